import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { startNodeServer } from '../testing/servers.ts';
import { trackConnections } from './connections.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const countOf = (text: string) => text.split('HTTP/1.1 200').length - 1;

describe('a client that pipelines requests', () => {
  it('is answered while they are few', async () => {
    const { open } = await startNodeServer((_req, res) => setImmediate(() => res.end()), trackConnections);
    const client = await open();
    for (let round = 1; round <= 5; round += 1) {
      client.socket.write(REQUEST.repeat(80));
      await eventually(() => countOf(client.received()) === round * 80);
    }
  });

  it.each([
    ['written later', 1_000, true],
    ['written before there were too many', 150, false],
  ])('gets the responses to 101 accepted ones, then the end of the connection: %s', async (_when, sent, isLate) => {
    let begun = 0;
    const respond: Array<() => unknown> = [];
    const { open, connections } = await startNodeServer((_req, res) => {
      begun += 1;
      if (!isLate) res.end();
      else respond.push(() => res.end());
      if (isLate && begun === 101) setImmediate(() => respond.map((one) => one()));
    }, trackConnections);
    const client = await open();
    client.socket.once('end', () => client.socket.end()).write(REQUEST.repeat(sent));
    expect(await client.ended).toBe('end');
    expect([begun, countOf(client.received())]).toEqual([101, 101]);
    await eventually(async () => (await connections()) === 0);
  });

  it('is cut off when unread responses are too many bytes', async () => {
    let begun = 0;
    const { open, connections } = await startNodeServer((_req, res) => {
      begun += 1;
      res.end(Buffer.alloc(1024 * 1024));
    }, trackConnections);
    const client = await open();
    client.socket.pause();
    client.socket.write(REQUEST.repeat(50));
    await eventually(async () => begun > 0 && (await connections()) === 0);
  });
});

describe('a request for another protocol is the last one on its connection', () => {
  const UPGRADE = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
  const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';
  const first = `GET /first HTTP/1.1\r\nHost: x\r\n${UPGRADE}\r\n`;
  const second = (body: string) => `POST /second HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;

  it.each([
    ['followed by another with a request as its body', [first + second(SMUGGLED), SMUGGLED], 'GET /first'],
    ['alone', [first], 'GET /first'],
    [
      'with a body',
      [`POST /first HTTP/1.1\r\nHost: x\r\n${UPGRADE}Content-Length: 10\r\n\r\n12345`, `67890${SMUGGLED}`, SMUGGLED],
      'POST /first',
    ],
  ])('%s', async (_what, writes, expected) => {
    const paths: string[] = [];
    const { open, connections } = await startNodeServer((req, res) => {
      paths.push(`${req.method} ${req.url}`);
      req.resume().once('end', () => setImmediate(() => res.end()));
    }, trackConnections);
    const client = await open();
    client.socket.once('end', () => client.socket.end());
    for (const text of writes) {
      await new Promise((resolve) => client.socket.write(text, resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await client.ended).toBe('end');
    expect(client.received().match(/^(HTTP.*|connection: .*)$/gim)).toEqual(['HTTP/1.1 200 OK', 'Connection: close']);
    expect(paths).toEqual([expected]);
    await eventually(async () => (await connections()) === 0);
  });
});
