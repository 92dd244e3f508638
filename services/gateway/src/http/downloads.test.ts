import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { expect, it } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';

const begun: Array<{ readonly token: string; readonly network: string; readonly res: ServerResponse }> = [];
const gateway = useTestGateway({
  env: { TRUSTED_PROXIES: 'loopback' },
  filesData: {
    download: async (req: IncomingMessage, res: ServerResponse, _id: string, network: string) => {
      begun.push({ token: String(req.url).slice('/downloads/'.length), network, res });
      await once(res, 'close');
    },
  },
});
const headOf = (token: string) => `GET /downloads/${token} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 2001:db8::1\r\n\r\n`;

it('a pipelined download begins once those before it have ended, and counts for the network of its client', async () => {
  const { socket, received } = await openRawClient(gateway.port);
  socket.write(headOf('first') + headOf('second'));
  await eventually(() => begun.at(-1)?.token === 'first');
  const { body } = await fetch(`${gateway.baseUrl}/healthz`);
  await body?.cancel();
  expect(begun.at(-1)?.token).toBe('first');
  begun.at(-1)?.res.end('one');
  await eventually(() => begun.at(-1)?.token === 'second');
  begun.at(-1)?.res.end('two');
  await eventually(() => expect(received()).toMatch(/one.*HTTP\/1\.1 200.*two/s));
  expect(begun.map(({ network }) => network)).toEqual(Array(2).fill('2001:db8:0:0::/64'));
});
