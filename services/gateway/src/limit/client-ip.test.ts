import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import { clientIpOf, networkOf } from './client-ip.ts';

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

  it('is empty for a connection that is gone, and still counts as one', () => {
    const ip = clientIpOf({ ip: undefined, raw: { socket: {} } } as unknown as FastifyRequest);
    expect(networkOf(ip)).toBe('');
  });
});

describe('whom a limit per address counts', () => {
  it('is an IPv4 address by itself', () => {
    expect(networkOf('203.0.113.7')).toBe('203.0.113.7');
    expect(networkOf('203.0.113.7')).not.toBe(networkOf('203.0.113.8'));
  });

  it.each([
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
    ['::', '0:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::1:2:3:4:5:6:7', '0:1:2:3::/64'],
    ['1:2:3:4:5:6:7::', '1:2:3:4::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
    ['::1:2:3:4:203.0.113.7', '0:0:1:2::/64'],
    ['1:2:3:4:5:6:203.0.113.7', '1:2:3:4::/64'],
  ])('is the /64 of an IPv6 one, however it is written: %s is in %s', (ip, network) => {
    expect(networkOf(ip)).toBe(network);
  });

  it('is the same for all addresses of a /64 and another for the next', () => {
    const own = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:db8:1:2:1:2:3:4'].map(networkOf);
    expect(new Set(own).size).toBe(1);
    expect(own).not.toContain(networkOf('2001:db8:1:3::1'));
  });
});
