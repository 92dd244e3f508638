import { expect, test } from 'vitest';
import { startNodeServer } from '../testing/servers.ts';
import { createPublicFetch, InternalAddressError, isPublicAddress } from './public-fetch.ts';

test.each(['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1'])('does not connect to %s', async (host) => {
  let requests = 0;
  const { port } = await startNodeServer((_req, res) => {
    requests += 1;
    res.end('found');
  });
  const call = createPublicFetch(new Set())(`http://${host}:${port}/`);
  const err = await call.catch((cause: Error) => cause);
  expect([err, (err as Error).cause].some((one) => one instanceof InternalAddressError)).toBe(true);
  expect(requests).toBe(0);
});

test('connects to a listed host at its port', async () => {
  const { port } = await startNodeServer((_req, res) => void res.end('found'));
  const listed = createPublicFetch(new Set([`localhost:${port}`]));
  expect(await (await listed(`http://localhost:${port}/`)).text()).toBe('found');
  await expect(listed(`http://127.0.0.1:${port}/`)).rejects.toThrow(InternalAddressError);
});

test.each([
  ['93.184.215.14', true],
  ['2606:2800:21f:cb07:6820:80da:af6b:8b2c', true],
  ...['10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1'].map((ip) => [ip, false]),
  ...['::1', '::', 'fe80::1%eth0', 'fd00::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', '2002:a00:1::1', 'name'].map((ip) => [
    ip,
    false,
  ]),
] as Array<[string, boolean]>)('the address %s is public: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic);
});
