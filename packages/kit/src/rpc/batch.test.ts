import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { expect, it, vi } from 'vitest';
import { commonErrors } from '../errors/errors.ts';
import { AUTHORIZATION, codeOf, openTransport, startTestServer, testRoute } from '../testing/servers.ts';
import { BATCH_CALLS_MAX, BATCH_TYPE, decodeBatch, encodeBatch } from './batch.ts';
import { UnaryCall } from './client/unary-call.ts';

const PATH = '/latchkey.apps.v1.ApplicationService/CreateApplication';

const codeOfError = (err: unknown) => ConnectError.from(err).code;

/** A client whose calls of one turn share a request, and a spy of these requests. */
async function open(createApplication: (name: string) => Promise<{ applicationId: string }>) {
  const route = testRoute(ApplicationService, { createApplication: ({ name }) => createApplication(name) });
  const { url } = await startTestServer([route]);
  const client = createClient(
    ApplicationService,
    openTransport(url, undefined, undefined, () => true),
  );
  const sent = vi.spyOn(UnaryCall.prototype, 'send').mockClear();
  return { url, client, sent };
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `application ${i}`);

it('the calls of a turn share a request, up to a limit, and each gets its own response or error', async () => {
  const { client, sent } = await open(async (name) => {
    if (name.endsWith(' 3')) throw commonErrors.dependency_unavailable();
    return { applicationId: `id of ${name}` };
  });
  const all = names(BATCH_CALLS_MAX + 1);
  const outcomes = await Promise.all(
    all.map((name) => client.createApplication({ name }).then(({ applicationId }) => applicationId, codeOfError)),
  );
  expect(outcomes).toEqual(all.map((name, i) => (i === 3 ? Code.Unavailable : `id of ${name}`)));
  expect(sent).toHaveBeenCalledTimes(2);
});

it('a call that is canceled, or whose deadline passes, does not end the others', async () => {
  const held = Promise.withResolvers<void>();
  const { client } = await open(async (name) => {
    if (name === 'held') await held.promise;
    return { applicationId: name };
  });
  const canceling = new AbortController();
  const calls = [
    codeOf(client.createApplication({ name: 'held' }, { signal: canceling.signal })),
    codeOf(client.createApplication({ name: 'held' }, { timeoutMs: 50 })),
    codeOf(client.createApplication({ name: 'free' })),
  ];
  expect(await calls[1]).toBe(Code.DeadlineExceeded);
  canceling.abort();
  expect(await calls[0]).toBe(Code.Canceled);
  held.resolve();
  expect(await calls[2]).toBe('answered');
});

it.each([
  ['nothing', Buffer.alloc(0)],
  ['an index beyond its end', Buffer.from([0, 0, 0, 9, 0x5b])],
  ['an index that is no list', Buffer.concat([Buffer.from([0, 0, 0, 2]), Buffer.from('{}')])],
  ['wrong sizes', Buffer.concat([encodeBatch([]), Buffer.from('more')])],
  ['calls without facts', encodeBatch([{ facts: null, message: Buffer.alloc(1) }])],
  ['too many calls', encodeBatch(names(BATCH_CALLS_MAX + 1).map(() => ({ facts: {}, message: Buffer.alloc(0) })))],
])('a batch of %s is rejected', async (_what, body) => {
  const { url } = await open(async () => ({ applicationId: '' }));
  const headers = { 'content-type': BATCH_TYPE, authorization: AUTHORIZATION };
  const response = await fetch(url + PATH, { method: 'POST', headers, body });
  expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'invalid_argument']);
});

it('a batch is decoded to what was encoded', () => {
  const parts = [
    { facts: { a: 'ä' }, message: Buffer.from('one') },
    { facts: {}, message: Buffer.alloc(0) },
  ];
  expect(decodeBatch(encodeBatch(parts))).toEqual(parts);
});
