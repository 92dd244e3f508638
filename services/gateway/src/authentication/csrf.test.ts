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

describe('the origin', () => {
  const check = (headers: Record<string, string>) => outcome(() => checkOrigin(request(headers), PUBLIC_ORIGIN));

  it.each([
    {},
    { host: 'gateway:8080' },
    { origin: PUBLIC_ORIGIN, host: 'gateway:8080' },
    { origin: PUBLIC_ORIGIN },
    { origin: 'http://gateway:8080', host: 'gateway:8080' },
    { origin: 'http://gateway:8080', host: 'GATEWAY:8080' },
    { origin: 'http://127.0.0.1:8080', host: '127.0.0.1:8080' },
    { origin: 'http://[::1]:8080', host: '[::1]:8080' },
  ])('of our own pages, or of no page, is let in: %j', (headers) => {
    expect(check(headers as Record<string, string>)).toBe('allowed');
  });

  it.each([
    { origin: 'null', host: 'gateway:8080' },
    { origin: 'null', host: 'null' },
    { origin: '', host: '' },
    { origin: 'https://evil.example', host: 'gateway:8080' },
    { origin: 'https://panel.example.com.evil.example', host: 'gateway:8080' },
    { origin: 'https://evil.example/https://panel.example.com', host: 'gateway:8080' },
    { origin: 'http://panel.example.com', host: 'gateway:8080' },
    { origin: 'https://panel.example.com:444', host: 'gateway:8080' },
    { origin: 'http://gateway:8081', host: 'gateway:8080' },
    { origin: 'http://gateway', host: 'gateway:8080' },
    { origin: 'https://evil.example' },
    { origin: 'garbage', host: 'garbage' },
    { origin: 'file://', host: '' },
    { origin: `${PUBLIC_ORIGIN}, ${PUBLIC_ORIGIN}`, host: 'gateway:8080' },
  ])('of another page is refused: %j', (headers) => {
    expect(check(headers as Record<string, string>)).toEqual(CSRF_INVALID);
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
