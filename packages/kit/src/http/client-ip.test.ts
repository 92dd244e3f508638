import type { IncomingMessage } from 'node:http';
import { expect, it } from 'vitest';
import { clientIp, networkOf, trustProxies } from './client-ip.ts';

const ipOf = (trusted: string[], remoteAddress: string | undefined, forwarded?: string) =>
  clientIp(
    { headers: { 'x-forwarded-for': forwarded }, socket: { remoteAddress } } as unknown as IncomingMessage,
    trustProxies(trusted),
  );

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::FFFF:203.0.113.7', '203.0.113.7'],
  ['2001:db8::1', '2001:db8::1'],
])('the address %s counts as %s, connected or forwarded', (ip, expected) => {
  expect([ipOf([], ip), ipOf(['loopback'], '127.0.0.1', ip)]).toEqual([expected, expected]);
});

it.each([
  ['an untrusted peer', [], '10.0.0.9', '203.0.113.7', '10.0.0.9'],
  [
    'a chain of trusted proxies',
    ['10.0.0.0/8', 'loopback'],
    '::ffff:10.0.0.9',
    '198.51.100.1, 203.0.113.7, 127.0.0.1',
    '203.0.113.7',
  ],
  ['a proxy that forwards nothing', ['10.0.0.0/8'], '10.0.0.9', undefined, '10.0.0.9'],
  ['a connection that is gone', ['loopback'], undefined, '203.0.113.7', ''],
])('the client behind %s is the last address that no trusted proxy has', (_what, trusted, remote, forwarded, expected) => {
  expect(ipOf(trusted, remote, forwarded)).toBe(expected);
});

it.each([
  ['203.0.113.7:1234', '203.0.113.7'],
  ['[2001:db8::1]:1234', '2001:db8::1'],
])('the port of the forwarded %s does not count', (forwarded, expected) => {
  expect(ipOf(['10.0.0.9'], '10.0.0.9', forwarded)).toBe(expected);
});

it.each(['unknown', '203.0.113:1234', '203.0.113', ' ', 'a, '])(
  'the proxy counts where it forwards no address: %j',
  (forwarded) => {
    expect(ipOf(['10.0.0.9'], '10.0.0.9', forwarded)).toBe('10.0.0.9');
  },
);

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['', ''],
  ['2001:0DB8:0001:0002::6', '2001:db8:1:2::/64'],
  ['2001:db8::1:2:3:4:5', '2001:db8:0:1::/64'],
  ['::', '0:0:0:0::/64'],
  ['::1:2:3:4:5:6:7', '0:1:2:3::/64'],
  ['fe80::1%br-lan.7', 'fe80:0:0:0::/64'],
  ['1:2:3:4:5:6:203.0.113.7', '1:2:3:4::/64'],
])('limits count %s as %s', (ip, network) => {
  expect(networkOf(ip)).toBe(network);
});
