import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { clientIpOf } from './client-ip.ts';

const request = (ip: string, remoteAddress: string | undefined = '10.0.0.9') =>
  ({ ip, raw: { socket: { remoteAddress } } }) as unknown as FastifyRequest;

describe("the client's address", () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:203.0.113.7', '203.0.113.7'],
    ['2001:db8::1', '2001:db8::1'],
    ['::1', '::1'],
  ])('%s counts as %s', (ip, expected) => {
    expect(clientIpOf(request(ip))).toBe(expected);
  });

  it.each(['', 'unknown', '203.0.113.7:1234', '[2001:db8::1]', '203.0.113', '1.2.3.4.5', "'; drop table", '_hidden', '0x7f.1'])(
    'is the proxy’s own when what was forwarded is no address: %j',
    (ip) => {
      expect(clientIpOf(request(ip))).toBe('10.0.0.9');
    },
  );

  it('is empty for a connection that is gone', () => {
    expect(clientIpOf({ ip: undefined, raw: { socket: {} } } as unknown as FastifyRequest)).toBe('');
  });
});
