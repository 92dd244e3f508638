import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { FastifyReply } from 'fastify';
import { expect, it } from 'vitest';
import { createCookies } from './cookies.ts';

function attributesOf(publicUrl: string, name: 'session' | 'oidc_flow'): string[] {
  const headers: string[] = [];
  const reply = { header: (_name: string, value: string) => headers.push(value) } as unknown as FastifyReply;
  createCookies(publicUrl).set(reply, name, 'a-token', timestampFromMs(Date.now() + 60_400));
  return headers[0]?.split('; ') ?? [];
}

it.each([
  ['https://panel.example.com', true],
  ['http://panel.example.com', true],
  ['http://localhost.example.com', true],
  ['http://127.0.0.1.example.com', true],
  ['https://localhost', true],
  ['http://localhost:1234', false],
  ['http://127.9.9.9:80', false],
  ['http://[::1]:8080', false],
])('a cookie of an instance at %j is only for HTTPS: %s', (publicUrl, isSecure) => {
  const secure = isSecure ? ['Secure'] : [];
  const expected = ['session=a-token', 'Max-Age=60', 'Path=/', 'HttpOnly', ...secure, 'SameSite=Lax'];
  expect(attributesOf(publicUrl, 'session')).toEqual(expected);
});

it('a session that ends clears what the browser has cached, and other cookies do not', () => {
  const clear = (name: 'session' | 'oidc_flow') => {
    const headers: Record<string, string> = {};
    const reply = { header: (header: string, value: string) => Object.assign(headers, { [header]: value }) };
    createCookies('http://localhost').clear(reply as unknown as FastifyReply, name);
    return [headers['set-cookie']?.split('; ', 2), headers['clear-site-data']];
  };
  expect(clear('session')).toEqual([['session=', 'Max-Age=0'], '"cache"']);
  expect(clear('oidc_flow')).toEqual([['oidc_flow=', 'Max-Age=0'], undefined]);
});

it('cookies of OpenID Connect are for its routes, behind the path of PUBLIC_URL', () => {
  expect(attributesOf('https://example.com/panel/', 'oidc_flow')).toContain('Path=/panel/api/v1/auth/oidc');
});
