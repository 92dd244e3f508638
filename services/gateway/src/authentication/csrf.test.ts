import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { Principal } from './credential.ts';
import { checkCsrfToken, checkNavigation, checkWebOrigin, isStateChanging } from './csrf.ts';

const PUBLIC = 'https://panel.example.com';
const REJECTED = expect.objectContaining({ reason: 'csrf_invalid', httpStatus: 403, code: 'csrf_invalid' });

function outcome(check: (req: IncomingMessage) => void, headers: Record<string, string | undefined>): unknown {
  try {
    const given = Object.entries(headers).filter(([, value]) => value !== undefined);
    check({ headers: Object.fromEntries(given) } as unknown as IncomingMessage);
    return 'admitted';
  } catch (err) {
    return err;
  }
}

describe('a request', () => {
  const check = (origin: string | undefined, host: string | undefined, scheme: string) =>
    outcome((req) => checkWebOrigin(req, PUBLIC, scheme), { origin, host });

  it.each([
    ['no page', undefined, 'gateway:8080', 'http'],
    ['no page and no host', undefined, undefined, 'http'],
    ['the public URL', PUBLIC, 'panel.example.com', 'http'],
    ['the public URL, whose host a proxy replaced', PUBLIC, 'gateway:8080', 'http'],
    ['the public URL in upper case', 'HTTPS://PANEL.EXAMPLE.COM', undefined, 'http'],
    ['another name of the service', 'http://GATEWAY:8080', 'gateway:8080', 'http'],
    ['another name on the default port', 'http://gateway', 'gateway:80', 'http'],
    ['another name by HTTPS through a trusted proxy', 'https://alias.example', 'alias.example', 'https'],
    ['an IPv6 address', 'http://[::1]:8080', '[::1]:8080', 'http'],
  ])('is admitted from %s', (_, origin, host, scheme) => {
    expect(check(origin, host, scheme)).toBe('admitted');
  });

  it.each([
    ['a sandboxed page', 'null', 'null', 'http'],
    ['an empty origin', '', 'gateway:8080', 'http'],
    ['another site', 'https://evil.example', 'gateway:8080', 'http'],
    ['the public URL by another scheme', 'http://panel.example.com', 'panel.example.com', 'http'],
    ['the same behind a proxy that replaces hosts', 'http://panel.example.com', 'gateway:8080', 'http'],
    ['another name by another scheme', 'https://gateway:8080', 'gateway:8080', 'http'],
    ['another name by HTTP, used by HTTPS', 'http://alias.example', 'alias.example', 'https'],
    ['the public URL on another port', `${PUBLIC}:444`, 'panel.example.com', 'http'],
    ['another name on another port', 'http://gateway:8081', 'gateway:8080', 'http'],
    ['a subdomain', 'https://a.panel.example.com', 'panel.example.com', 'http'],
    ['a host with the same end', 'https://evilpanel.example.com', 'panel.example.com', 'http'],
    ['a host with the same beginning', `${PUBLIC}.evil.example`, 'panel.example.com', 'http'],
    ['the public URL as a user', `${PUBLIC}@evil.example`, 'panel.example.com', 'http'],
    ['the public URL as a path', `https://evil.example/${PUBLIC}`, 'gateway:8080', 'http'],
    ['two pages', `${PUBLIC}, ${PUBLIC}`, 'gateway:8080', 'http'],
    ['a text other than a URL', 'garbage', 'garbage', 'http'],
  ])('is rejected from %s', (_, origin, host, scheme) => {
    expect(check(origin, host, scheme)).toEqual(REJECTED);
  });

  it.each([
    ['token-of-this-session', 'admitted'],
    [undefined, REJECTED],
    ['', REJECTED],
    ['TOKEN-OF-THIS-SESSION', REJECTED],
    ['token-of-this-session, token-of-this-session', REJECTED],
  ])('with the CSRF token %j: %s', (token, expected) => {
    const principal = { csrfToken: 'token-of-this-session' } as Principal;
    expect(outcome((req) => checkCsrfToken(req, principal), { 'x-csrf-token': token })).toEqual(expected);
  });

  it.each([
    ['cross-site', 'document', 'admitted'],
    ['cross-site', undefined, 'admitted'],
    ['cross-site', 'image', REJECTED],
    ['cross-site', 'empty', REJECTED],
    ['same-origin', 'empty', 'admitted'],
    [undefined, 'image', 'admitted'],
  ])('that an issuer sends back is a visit, not %s for a %s', (site, destination, expected) => {
    const headers = { 'sec-fetch-site': site, 'sec-fetch-dest': destination };
    expect(outcome(checkNavigation, headers)).toEqual(expected);
  });
});

it('a method changes state unless it is GET, HEAD or OPTIONS', () => {
  const methods = ['GET', 'HEAD', 'POST', 'PATCH', 'OPTIONS', undefined];
  expect(methods.map(isStateChanging)).toEqual([false, false, true, true, false, true]);
});
