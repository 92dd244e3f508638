import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { defineErrors } from '../errors/errors.ts';
import { startNodeServer } from '../testing/servers.ts';
import { trackConnections } from './connections.ts';
import { endWithEnvelope } from './raw-error.ts';
import { requestIdOf } from './request.ts';

const errors = defineErrors({
  key_unknown: { kind: 'unauthenticated', code: 'api_key_invalid', message: 'The key is not valid' },
});

const UPGRADE = 'GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Request-Id: mine\r\n\r\n';

function rejectUpgrades(server: Server): void {
  server.on('upgrade', (req: IncomingMessage, socket: Duplex) => {
    const headers = { 'www-authenticate': 'Bearer' };
    endWithEnvelope(socket, errors.key_unknown(), { requestId: requestIdOf(req), headers });
  });
}

/** All that a server sends until it closes the connection. */
async function exchange(server: Awaited<ReturnType<typeof startNodeServer>>, bytes: string): Promise<string> {
  const client = await server.open(bytes);
  client.socket.once('end', () => client.socket.end());
  expect(await client.ended).toBe('end');
  return client.received();
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('a rejected upgrade', () => {
  it('is answered with the envelope, and other headers as given', async () => {
    const server = await startNodeServer(() => undefined, rejectUpgrades);
    const [head = '', body = ''] = (await exchange(server, UPGRADE)).split('\r\n\r\n');
    expect(head.split('\r\n')).toEqual([
      'HTTP/1.1 401 Unauthorized',
      'content-type: application/json; charset=utf-8',
      `content-length: ${body.length}`,
      'x-request-id: mine',
      'x-content-type-options: nosniff',
      'cache-control: no-store',
      'www-authenticate: Bearer',
      'connection: close',
    ]);
    expect(JSON.parse(body)).toEqual({ success: false, code: 'api_key_invalid', message: 'The key is not valid' });
    await eventually(async () => (await server.connections()) === 0);
  });

  it('is answered once, to a client that has sent much behind it, after the responses before it', async () => {
    const answers: Array<() => void> = [];
    const { open, connections } = await startNodeServer(
      (_req, res) => void answers.push(() => res.end('first')),
      (server) => {
        trackConnections(server);
        for (const reject of [rejectUpgrades, rejectUpgrades]) reject(server);
        server.on('upgrade', () => answers.shift()?.());
      },
    );
    const client = await open(REQUEST + UPGRADE);
    await client.pour(20 * 1024 * 1024);
    client.socket.end();
    expect(await client.ended).toBe('end');
    expect(client.received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401']);
    await eventually(async () => (await connections()) === 0);
  });
});
