import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { describe, expect, it } from 'vitest';
import { startNodeServer } from '../testing/servers.ts';
import { trackConnections } from './connections.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

describe('a client that sends requests without waiting for answers', () => {
  it('is answered as long as they are not too many at once', async () => {
    const { port } = await startNodeServer((_req, res) => setImmediate(() => res.end()), trackConnections);
    const client = await openRawClient(port);
    for (let round = 1; round <= 5; round += 1) {
      client.socket.write(REQUEST.repeat(80));
      await eventually(() => client.received().split('HTTP/1.1 200').length - 1 === round * 80);
    }
    client.socket.destroy();
  });

  it('gets the answers to as many as are accepted, then the end of the connection', async () => {
    let begun = 0;
    const respond: Array<() => unknown> = [];
    const { port, connections } = await startNodeServer((_req, res) => {
      begun += 1;
      respond.push(() => res.end());
      if (begun === 101) setImmediate(() => respond.map((one) => one()));
    }, trackConnections);
    const client = await openRawClient(port);
    client.socket.once('end', () => client.socket.end());
    // More than Node reads from a connection in one go.
    client.socket.write(REQUEST.repeat(5_000));
    expect(await client.ended).toBe('end');
    const heads = client.received().split('HTTP/1.1 200').slice(1);
    expect([begun, heads.length]).toEqual([101, 101]);
    expect(heads.map((head) => /^connection: close/im.test(head)).indexOf(true)).toBe(100);
    await eventually(async () => (await connections()) === 0);
  });

  it('gets them also where the last one was written before there were too many', async () => {
    const { port } = await startNodeServer((_req, res) => res.end(), trackConnections);
    const client = await openRawClient(port);
    client.socket.once('end', () => client.socket.end()).write(REQUEST.repeat(150));
    expect(await client.ended).toBe('end');
    expect(client.received().match(/HTTP\/1\.1 200/g)).toHaveLength(101);
  });

  it('is cut off when the answers that it does not read are too many bytes', async () => {
    let begun = 0;
    const { port, connections } = await startNodeServer((_req, res) => {
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

describe('a request that asks for another protocol', () => {
  const UPGRADE = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
  const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
  const start = async () => {
    const paths: string[] = [];
    const server = await startNodeServer((req, res) => {
      paths.push(`${req.method} ${req.url}`);
      req.resume().once('end', () => setImmediate(() => res.end()));
    }, trackConnections);
    return { ...server, paths };
  };

  it.each([
    ['a request', SMUGGLED],
    ['garbage', 'garbage\r\n\r\n'],
    ['nothing', ''],
  ])('is the last one on its connection, also when followed by the head of another whose body is %s', async (_what, body) => {
    const { port, paths, connections } = await start();
    const client = await openRawClient(port);
    client.socket.once('end', () => client.socket.end());
    client.socket.write(
      `GET /first HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\nPOST /second HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`,
      () => client.socket.write(body),
    );
    expect(await client.ended).toBe('end');
    expect(client.received().match(/^(HTTP.*|connection: .*)$/gim)).toEqual(['HTTP/1.1 200 OK', 'Connection: close']);
    expect(paths).toEqual(['GET /first']);
    await eventually(async () => (await connections()) === 0);
  });

  it('is read to the end of its own body, and no further', async () => {
    const { port, paths } = await start();
    const client = await openRawClient(port);
    client.socket.once('end', () => client.socket.end());
    client.socket.write(`POST /first HTTP/1.1\r\nHost: x\r\n${UPGRADE}Content-Length: 10\r\n\r\n12345`, () =>
      setImmediate(() => client.socket.write(`67890${SMUGGLED}`, () => client.socket.write(SMUGGLED))),
    );
    expect(await client.ended).toBe('end');
    expect(client.received().match(/^(HTTP.*|connection: .*)$/gim)).toEqual(['HTTP/1.1 200 OK', 'Connection: close']);
    expect(paths).toEqual(['POST /first']);
  });
});
