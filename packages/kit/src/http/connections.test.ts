import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it } from 'vitest';
import { startHttpServer } from '../testing/http-server.ts';
import { trackConnections } from './connections.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('a client that sends requests without waiting for answers', () => {
  it('is answered as long as they are not too many at once', async () => {
    const { port } = await startHttpServer((_req, res) => setImmediate(() => res.end()), trackConnections);
    const client = await openRawClient(port);
    for (let round = 1; round <= 5; round += 1) {
      client.socket.write(REQUEST.repeat(80));
      await eventually(() => client.received().split('HTTP/1.1 200').length - 1 === round * 80);
    }
    client.socket.destroy();
  });

  it('is cut off when they are too many, before they take up the memory', async () => {
    let begun = 0;
    const { port, connections } = await startHttpServer(() => {
      begun += 1;
    }, trackConnections);
    const client = await openRawClient(port);
    client.socket.write(REQUEST.repeat(150));
    await eventually(async () => begun > 0 && (await connections()) === 0);
    client.socket.destroy();
    // One that is answered and a hundred that wait are let be; the rest had come with the first that was too much.
    expect(begun).toBeGreaterThan(101);
  });

  it('is cut off when the answers that it does not read are too many bytes', async () => {
    let begun = 0;
    const { port, connections } = await startHttpServer((_req, res) => {
      begun += 1;
      res.end(Buffer.alloc(1024 * 1024));
    }, trackConnections);
    const client = await openRawClient(port);
    client.socket.pause();
    client.socket.write(REQUEST.repeat(50));
    await eventually(async () => begun > 0 && (await connections()) === 0);
    client.socket.destroy();
  });
});
