import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { checkCsrfToken, checkOrigin, isStateChanging } from './csrf.ts';
import type { Principal } from './principal.ts';

const PUBLIC_ORIGIN = 'https://panel.example.com';
const CSRF_INVALID = expect.objectContaining({ reason: 'csrf_invalid', httpStatus: 403, code: 'csrf_invalid' });

const request = (headers: Record<string, string>) => ({ headers }) as unknown as IncomingMessage;

function outcome(check: () => void): unknown {
  try {
    check();
    return 'allowed';
  } catch (err) {
    return err;
  }
}

/** Where a request of a browser comes from, where it goes to, and whether it is let in. `by` is what is known of how the client called. */
interface OriginCase {
  readonly what: string;
  readonly origin?: string;
  readonly host?: string;
  readonly by?: 'http' | 'https';
}

describe('the origin', () => {
  const check = ({ origin, host, by = 'http' }: OriginCase, publicOrigin = PUBLIC_ORIGIN) => {
    const headers = { ...(origin !== undefined && { origin }), ...(host !== undefined && { host }) };
    return outcome(() => checkOrigin(request(headers), publicOrigin, by));
  };

  it.each<OriginCase>([
    { what: 'no page, and no host' },
    { what: 'no page', host: 'gateway:8080' },
    { what: 'the public URL, called by its host', origin: PUBLIC_ORIGIN, host: 'panel.example.com' },
    { what: 'the public URL, whose host a proxy replaced', origin: PUBLIC_ORIGIN, host: 'gateway:8080' },
    { what: 'the public URL, whose host a proxy dropped', origin: PUBLIC_ORIGIN },
    { what: 'the public URL in upper case', origin: 'HTTPS://PANEL.EXAMPLE.COM', host: 'PANEL.EXAMPLE.COM' },
    { what: 'another name of the service', origin: 'http://gateway:8080', host: 'gateway:8080' },
    { what: 'another name, the host in upper case', origin: 'http://gateway:8080', host: 'GATEWAY:8080' },
    { what: 'another name, the origin in upper case', origin: 'http://GATEWAY:8080', host: 'gateway:8080' },
    { what: 'another name on the port that goes without saying', origin: 'http://gateway', host: 'gateway:80' },
    { what: 'another name by HTTPS, says a trusted proxy', origin: 'https://alias.example', host: 'alias.example', by: 'https' },
    { what: 'an address', origin: 'http://127.0.0.1:8080', host: '127.0.0.1:8080' },
    { what: 'an IPv6 address', origin: 'http://[::1]:8080', host: '[::1]:8080' },
  ])('is let in of $what', (given) => {
    expect(check(given)).toBe('allowed');
  });

  it.each<OriginCase>([
    { what: 'a sandboxed or local page', origin: 'null', host: 'gateway:8080' },
    { what: 'such a page, at a host of that name', origin: 'null', host: 'null' },
    { what: 'nothing', origin: '', host: '' },
    { what: 'nothing, at a host', origin: '', host: 'gateway:8080' },
    { what: 'another site', origin: 'https://evil.example', host: 'gateway:8080' },
    { what: 'another site, without a host', origin: 'https://evil.example' },
    { what: 'the public URL by another scheme', origin: 'http://panel.example.com', host: 'panel.example.com' },
    { what: 'that, behind a proxy that replaces hosts', origin: 'http://panel.example.com', host: 'gateway:8080' },
    { what: 'another name by another scheme', origin: 'https://gateway:8080', host: 'gateway:8080' },
    { what: 'another name by HTTP, called by HTTPS', origin: 'http://alias.example', host: 'alias.example', by: 'https' },
    { what: 'no scheme of the web', origin: 'ftp://gateway:8080', host: 'gateway:8080' },
    { what: 'the public URL on another port', origin: 'https://panel.example.com:444', host: 'panel.example.com' },
    { what: 'another name on another port', origin: 'http://gateway:8081', host: 'gateway:8080' },
    { what: 'another name on no port', origin: 'http://gateway', host: 'gateway:8080' },
    { what: 'a subdomain', origin: 'https://a.panel.example.com', host: 'panel.example.com' },
    { what: 'the domain above', origin: 'https://example.com', host: 'panel.example.com' },
    { what: 'a host that ends likewise', origin: 'https://evilpanel.example.com', host: 'panel.example.com' },
    { what: 'a host that begins likewise', origin: 'https://panel.example.com.evil.example', host: 'panel.example.com' },
    { what: 'the host with a dot behind it', origin: 'https://panel.example.com.', host: 'panel.example.com' },
    { what: 'the public URL as a user', origin: 'https://panel.example.com@evil.example', host: 'panel.example.com' },
    { what: 'the public URL as a path', origin: 'https://evil.example/https://panel.example.com', host: 'gateway:8080' },
    { what: 'a path, which no browser sends', origin: `${PUBLIC_ORIGIN}/`, host: 'panel.example.com' },
    { what: 'two pages', origin: `${PUBLIC_ORIGIN}, ${PUBLIC_ORIGIN}`, host: 'gateway:8080' },
    { what: 'white space', origin: ` ${PUBLIC_ORIGIN}`, host: 'gateway:8080' },
    { what: 'what is no URL', origin: 'garbage', host: 'garbage' },
    { what: 'a file', origin: 'file://', host: '' },
  ])('is refused of $what', (given) => {
    expect(check(given)).toEqual(CSRF_INVALID);
  });

  it('of a service by plain HTTP is refused by HTTPS', () => {
    const [host, publicOrigin] = ['localhost:8080', 'http://localhost:8080'];
    expect(check({ what: '', origin: 'http://localhost:8080', host }, publicOrigin)).toBe('allowed');
    expect(check({ what: '', origin: 'https://localhost:8080', host }, publicOrigin)).toEqual(CSRF_INVALID);
  });
});

describe('the CSRF token', () => {
  const principal = { csrfToken: 'token-of-this-session' } as Principal;
  const check = (token: unknown) => outcome(() => checkCsrfToken(request({ 'x-csrf-token': token as string }), principal));

  it('is let in when it is that of the session', () => {
    expect(check('token-of-this-session')).toBe('allowed');
  });

  it.each([
    undefined,
    '',
    'token',
    'TOKEN-OF-THIS-SESSION',
    'token-of-this-session ',
    'token-of-this-session, token-of-this-session',
  ])('is refused when it is %j', (token) => {
    expect(check(token)).toEqual(CSRF_INVALID);
  });
});

describe('a state-changing method', () => {
  it('is every one but GET and HEAD', () => {
    const methods = ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS', undefined];
    expect(methods.map(isStateChanging)).toEqual([false, false, true, true, true, true, true, true]);
  });
});
