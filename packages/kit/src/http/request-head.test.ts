import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { findHeadProblem } from './request-head.ts';

const head = (httpVersion: string, ...hosts: string[]) =>
  ({
    httpVersion,
    headers: { host: hosts[0] },
    rawHeaders: hosts.flatMap((host) => ['HOST', host]),
  }) as unknown as IncomingMessage;

it.each(['localhost', 'localhost:8080', 'a.example:', 'A_b-c.example', '127.0.0.1:1', '[::1]', '[::ffff:1.2.3.4]:65535', 'x.'])(
  'accepts the host %s',
  (host) => {
    expect(findHeadProblem(head('1.1', host))).toBeUndefined();
  },
);

const INVALID = ['', 'localhost@evil.com', 'a b', 'a,b', 'a/b', 'a?b', 'a#b', 'a\\b', 'http://a', 'a:b', 'a:1:2', 'a:65536'];
const ODD = ['a:123456', ':80', '[::1', '[:::1]', '[a]', '::1', 'a%00', 'é', '"a"', `${'a'.repeat(16_000)}@`];

it.each([...INVALID, ...ODD])('rejects the host %.20j', (host) => {
  expect(findHeadProblem(head('1.1', host))).toBeDefined();
  expect(findHeadProblem(head('1.0', host))).toBeDefined();
});

it('requires one host, which HTTP/1.0 may leave out', () => {
  expect(findHeadProblem(head('1.0'))).toBeUndefined();
  for (const wrong of [head('1.1'), head('1.1', 'a', 'a'), head('1.0', 'a', 'a')]) expect(findHeadProblem(wrong)).toBeDefined();
});

it.each(['0.9', '2.0', '1.2', '3.0'])('rejects HTTP/%s', (version) => {
  expect(findHeadProblem(head(version, 'a'))).toBeDefined();
});
