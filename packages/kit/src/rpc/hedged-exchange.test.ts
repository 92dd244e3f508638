import type { IncomingMessage, ServerResponse } from 'node:http';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, startHttpServer } from '../testing/servers.ts';
import { checkServing } from './check-serving.ts';
import { bearer } from './credentials.ts';
import { createLeanTransport } from './lean-transport.ts';
import { repeatable } from './repeatable.ts';

/** Enough connections for every call and its second one. */
const CONNECTIONS = 64;
const TWICE_MAX = 8;

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    (err: unknown) => ConnectError.from(err).code,
  );

/** A service that leaves calls without an answer where it is told to, as one process of several does that hangs. */
async function startHanging(hangs: (request: number) => boolean) {
  let requests = 0;
  let closed = 0;
  const baseUrl = await startHttpServer((req: IncomingMessage, res: ServerResponse) => {
    requests += 1;
    res.once('close', () => {
      if (!res.writableEnded) closed += 1;
    });
    if (hangs(requests)) return;
    // A health check is to be told that it serves.
    const body = req.url?.includes('Health') ? Buffer.from([0x08, 0x01]) : '';
    res.writeHead(200, { 'content-type': 'application/proto' }).end(body);
  });
  const fallback = {} as Transport;
  const transport = createLeanTransport({ baseUrl, authorization: bearer(CREDENTIAL), fallback, connections: CONNECTIONS });
  onTestFinished(() => transport.close());
  const client = createClient(ApplicationService, transport);
  return { transport, client, requests: () => requests, closed: () => closed };
}

describe('a call that is not answered soon', () => {
  it('is sent on a second connection where it is a read, and the first one is given up', async () => {
    const { client, requests, closed } = await startHanging((request) => request === 1);
    expect(await codeOf(client.getApplicationSettings({}, { timeoutMs: 4_500 }))).toBe('answered');
    expect(requests()).toBe(2);
    await eventually(() => closed() === 1);
  });

  it('is sent on a third and a fourth, where the others lead to the same process, and on no more', async () => {
    const { client, requests, closed } = await startHanging((request) => request < 4);
    expect(await codeOf(client.getApplicationSettings({}, { timeoutMs: 4_500 }))).toBe('answered');
    expect(requests()).toBe(4);
    await eventually(() => closed() === 3);
    const { client: hanging, requests: sent } = await startHanging(() => true);
    expect(await codeOf(hanging.getApplicationSettings({}, { timeoutMs: 4_500 }))).toBe(Code.DeadlineExceeded);
    expect(sent()).toBe(4);
  });

  it('is not sent twice where it is a write', async () => {
    const { client, requests } = await startHanging(() => true);
    expect(await codeOf(client.createApplication({}, { timeoutMs: 1_500 }))).toBe(Code.DeadlineExceeded);
    expect(requests()).toBe(1);
  });

  it('is sent on a second one where its caller says that twice is as good as once', async () => {
    const { client, requests } = await startHanging((request) => request === 1);
    expect(await codeOf(client.createApplication({}, repeatable({ timeoutMs: 4_500 })))).toBe('answered');
    expect(requests()).toBe(2);
  });

  it('ends at its deadline with both, where neither is answered', async () => {
    const { client, requests, closed } = await startHanging(() => true);
    expect(await codeOf(client.getApplicationSettings({}, { timeoutMs: 1_500 }))).toBe(Code.DeadlineExceeded);
    expect(requests()).toBe(2);
    await eventually(() => closed() === 2);
  });

  it('is sent once where so many are sent twice already, and again twice once they have ended', async () => {
    const { client, requests } = await startHanging(() => true);
    const read = () => codeOf(client.getApplicationSettings({}, { timeoutMs: 1_500 }));
    const count = TWICE_MAX + 4;
    for (let round = 1; round <= 2; round += 1) {
      const codes = await Promise.all(Array.from({ length: count }, read));
      expect(new Set(codes)).toEqual(new Set([Code.DeadlineExceeded]));
      expect(requests()).toBe(round * (count + TWICE_MAX));
    }
  });
});

describe('a look whether a service is ready', () => {
  it('goes round a process that hangs', async () => {
    const { transport, requests } = await startHanging((request) => request === 1);
    await checkServing(transport, 'apps');
    expect(requests()).toBe(2);
  });

  it('fails within some 2 s where all hang', async () => {
    const { transport, requests } = await startHanging(() => true);
    const startedAt = performance.now();
    await expect(checkServing(transport, 'apps')).rejects.toThrow();
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    expect(requests()).toBe(2);
  });
});
