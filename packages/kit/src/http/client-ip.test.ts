import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { clientIp, networkOf, trustProxies } from './client-ip.ts';

const ipOf = (trusted: string[], remoteAddress: string | undefined, forwarded?: string) =>
  clientIp(
    { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } } as unknown as IncomingMessage,
    trustProxies(trusted),
  );

describe("the client's address", () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:203.0.113.7', '203.0.113.7'],
    ['2001:db8::1', '2001:db8::1'],
  ])('%s counts as %s, whether it came by itself or was forwarded', (ip, expected) => {
    expect(ipOf([], ip)).toBe(expected);
    expect(ipOf(['loopback'], '127.0.0.1', ip)).toBe(expected);
  });

  it('is that of the connection where whoever it comes from is not trusted', () => {
    expect(ipOf([], '10.0.0.9', '203.0.113.7')).toBe('10.0.0.9');
    expect(ipOf(['10.0.0.0/30'], '10.0.0.9', '203.0.113.7')).toBe('10.0.0.9');
  });

  it('is the last that a trusted proxy forwards and that is none itself', () => {
    const trusted = ['10.0.0.0/8', 'loopback'];
    expect(ipOf(trusted, '10.0.0.9', '198.51.100.1, 203.0.113.7, 127.0.0.1')).toBe('203.0.113.7');
    expect(ipOf(trusted, '::ffff:10.0.0.9', '198.51.100.1, 203.0.113.7')).toBe('203.0.113.7');
    expect(ipOf(trusted, '10.0.0.9')).toBe('10.0.0.9');
  });

  it.each(['unknown', '203.0.113.7:1234', '[2001:db8::1]', '203.0.113', '1.2.3.4.5', '_hidden', '0x7f.1', ' ', ',', 'a, '])(
    'is the proxy’s own when what was forwarded is no address: %j',
    (forwarded) => {
      expect(ipOf(['10.0.0.9'], '10.0.0.9', forwarded)).toBe('10.0.0.9');
    },
  );

  it('is empty for a connection that is gone, and still counts as one', () => {
    expect(networkOf(ipOf(['loopback'], undefined, '203.0.113.7'))).toBe('');
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
