import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { findHeadProblem, requestIdOf } from './request.ts';

const head = (httpVersion: string, ...hosts: string[]) =>
  ({
    httpVersion,
    headers: { host: hosts[0] },
    rawHeaders: hosts.flatMap((host) => ['HOST', host]),
  }) as unknown as IncomingMessage;

it.each(['localhost', 'a.example:', 'A_b-c.example', '127.0.0.1:1', '[::1]', '[::ffff:1.2.3.4]:65535'])(
  'accepts the host %s',
  (host) => {
    expect(findHeadProblem(head('1.1', host))).toBeUndefined();
  },
);

const INVALID = [
  '',
  'localhost@evil.com',
  'a b',
  'a,b',
  'a/b',
  'a\\b',
  'a:b',
  'a:65536',
  'a:123456',
  ':80',
  '[:::1]',
  '::1',
  'é',
];

it.each([...INVALID, `${'a'.repeat(16_000)}@`])('rejects the host %.20j', (host) => {
  expect(findHeadProblem(head('1.1', host))).toBeDefined();
  expect(findHeadProblem(head('1.0', host))).toBeDefined();
});

it('requires one host, which HTTP/1.0 may leave out', () => {
  expect(findHeadProblem(head('1.0'))).toBeUndefined();
  for (const wrong of [head('1.1'), head('1.1', 'a', 'a'), head('1.0', 'a', 'a')]) expect(findHeadProblem(wrong)).toBeDefined();
});

it.each(['0.9', '2.0', '1.2'])('rejects HTTP/%s', (version) => {
  expect(findHeadProblem(head(version, 'a'))).toBeDefined();
});

const idFor = (given: unknown) => requestIdOf({ headers: { 'x-request-id': given } } as unknown as IncomingMessage);

it.each(['a', 'A.b_c-9', 'x'.repeat(128)])('accepts the request id %j', (given) => {
  expect(idFor(given)).toBe(given);
});

it.each([undefined, '', 'x'.repeat(129), 'a b', 'a\nb', 'é', 'a/b', ['a', 'b']])('replaces the request id %j', (given) => {
  expect(idFor(given)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
