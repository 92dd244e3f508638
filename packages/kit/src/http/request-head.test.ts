import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { findHeadProblem } from './request-head.ts';

const head = (httpVersion: string, ...hosts: string[]) =>
  ({
    httpVersion,
    headers: { host: hosts[0] },
    rawHeaders: hosts.flatMap((host) => ['HOST', host]),
  }) as unknown as IncomingMessage;

describe('the head of a request', () => {
  it.each(['localhost', 'localhost:8080', 'a.example:', 'A_b-c.example', '127.0.0.1:1', '[::1]', '[::ffff:1.2.3.4]:65535', 'x.'])(
    'may name the host %s',
    (host) => {
      expect(findHeadProblem(head('1.1', host))).toBeUndefined();
    },
  );

  it.each([
    '',
    'localhost@evil.com',
    'a b',
    'a,b',
    'a/b',
    'a?b',
    'a#b',
    'a\\b',
    'http://a',
    'a:b',
    'a:1:2',
    'a:65536',
    'a:123456',
    ':80',
    '[::1',
    '[:::1]',
    '[a]',
    '::1',
    'a%00',
    'é',
    '"a"',
    `${'a'.repeat(16_000)}@`,
  ])('may not name the host %.20j', (host) => {
    expect(findHeadProblem(head('1.1', host))).toBeDefined();
    expect(findHeadProblem(head('1.0', host))).toBeDefined();
  });

  it('names one host, which HTTP/1.0 may leave out', () => {
    expect(findHeadProblem(head('1.0'))).toBeUndefined();
    expect(findHeadProblem(head('1.1'))).toBeDefined();
    expect(findHeadProblem(head('1.1', 'a', 'a'))).toBeDefined();
    expect(findHeadProblem(head('1.0', 'a', 'a'))).toBeDefined();
  });

  it.each(['0.9', '2.0', '1.2', '3.0'])('is not of HTTP/%s', (version) => {
    expect(findHeadProblem(head(version, 'a'))).toBeDefined();
  });
});
