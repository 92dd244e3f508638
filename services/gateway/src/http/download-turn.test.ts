import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/raw-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DataPathKind, startUploadGateway, type UploadGateway } from '../testing/upload-gateway.ts';

const REQUEST = 'GET /downloads/a-token HTTP/1.1\r\nHost: x\r\n\r\n';

let begun = 0;
let closed = 0;
let finish = Promise.withResolvers<void>();

/** Begins an answer and ends it when the test says. */
async function download(_req: IncomingMessage, res: ServerResponse): Promise<void> {
  begun += 1;
  res.once('close', () => {
    closed += 1;
  });
  res.writeHead(200, { 'content-length': 5 }).write('x');
  await Promise.race([finish.promise, once(res, 'close')]);
  res.end('xxx!');
}

describe.each<DataPathKind>(['direct', 'remote'])('a download that is asked for behind another, passed on %s', (kind) => {
  let gateway: UploadGateway;
  beforeAll(async () => {
    gateway = await startUploadGateway(kind, { download });
  });
  afterAll(() => gateway.stop());
  beforeEach(() => {
    begun = closed = 0;
    finish = Promise.withResolvers();
  });

  async function ask(count = 1) {
    const client = await openRawClient(gateway.port);
    client.socket.write(REQUEST.repeat(count));
    await eventually(() => client.received().endsWith('x'));
    return client;
  }

  it('is begun once that one has been sent', async () => {
    const client = await ask(4);
    // What comes after is answered, so that what came before would have been begun.
    const other = await ask();
    expect(begun).toBe(2);
    finish.resolve();
    await eventually(() => client.received().match(/!/g)?.length === 4);
    expect(begun).toBe(5);
    for (const { socket } of [client, other]) socket.destroy();
  });

  it('is not begun at all once the client is gone', async () => {
    const client = await ask(4);
    client.socket.resetAndDestroy();
    await eventually(() => closed === 1);
    const other = await ask();
    expect(begun).toBe(2);
    other.socket.destroy();
  });
});
