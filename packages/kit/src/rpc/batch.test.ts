import { create, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, type ServiceImpl } from '@connectrpc/connect';
import { ApplicationService, CreateApplicationRequestSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { expect, it, onTestFinished, vi } from 'vitest';
import { commonErrors } from '../errors/errors.ts';
import { AUTHORIZATION, codeOf, openTransport, startTestServer, testRoute } from '../testing/servers.ts';
import { BATCH_CALLS_MAX, BATCH_TYPE, decodeBatch, encodeBatch } from './batch.ts';
import { UnaryCall } from './client/unary-call.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';

const PATH = '/latchkey.apps.v1.ApplicationService/CreateApplication';

const codeOfError = (err: unknown) => ConnectError.from(err).code;

type Handler = ServiceImpl<typeof ApplicationService>['createApplication'];

const openRoute = (createApplication: Handler) => startTestServer([testRoute(ApplicationService, { createApplication })]);

/** A client whose calls of one turn share a request, and a spy of these requests. */
async function open(createApplication: (name: string) => Promise<{ applicationId: string }>) {
  const { url } = await openRoute(({ name }) => createApplication(name));
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

async function post(url: string, body: Uint8Array) {
  const headers = { 'content-type': BATCH_TYPE, authorization: AUTHORIZATION };
  const signal = AbortSignal.timeout(10_000);
  const response = await fetch(url + PATH, { method: 'POST', headers, body: Buffer.from(body), signal });
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}

const EMPTY = Buffer.alloc(0);
const FACTS = { headers: {}, timeoutMs: 1_000 };
const batchOf = (facts: unknown) => encodeBatch([{ facts, message: EMPTY }]);
const withIndex = (index: unknown) => {
  const text = Buffer.from(JSON.stringify(index));
  return Buffer.concat([Buffer.from([0, 0, text.length >> 8, text.length & 255]), text, Buffer.from('four')]);
};

it('a batch that is malformed anywhere is rejected before any call', async () => {
  const handler = vi.fn(async () => ({ applicationId: '' }));
  const { url } = await open(handler);
  const sizes = [
    [2, '2'],
    [2.5, 1.5],
    [9, -5],
    [4, null],
    [4, []],
  ];
  const bodies = [
    EMPTY,
    Buffer.from([0, 0, 0, 9, 0x5b]),
    Buffer.concat([batchOf(FACTS), Buffer.from('more')]),
    ...[null, 1, {}, { headers: {} }, { ...FACTS, headers: null }, { ...FACTS, timeoutMs: -1 }].map(batchOf),
    encodeBatch(Array.from({ length: 65 }, () => ({ facts: FACTS, message: EMPTY }))),
    ...[{}, 'a', null, [1], [[]]].map(withIndex),
    ...sizes.map((list) => withIndex(list.map((size) => [FACTS, size]))),
  ];
  for (const body of bodies) {
    const { status, bytes } = await post(url, body);
    expect([status, bytes.toString()], body.toString('utf8', 4, 80)).toEqual([
      400,
      expect.stringContaining('"invalid_argument"'),
    ]);
  }
  expect(handler).not.toHaveBeenCalled();
});

it('a call of a batch ends at its deadline, 60 s at most, and its response is 2 MiB at most', async () => {
  const left: number[] = [];
  const held = Promise.withResolvers<void>();
  const { url } = await openRoute(async ({ name }, { timeoutMs }) => {
    left.push(timeoutMs() ?? 0);
    if (name === 'held') await held.promise;
    return { applicationId: name === 'large' ? 'x'.repeat(MESSAGE_BYTES_MAX) : name };
  });
  onTestFinished(() => held.resolve());
  const call = (name: string, timeoutMs: number) => ({
    facts: { headers: JSON.parse('{"__proto__":"a"}'), timeoutMs },
    message: toBinary(CreateApplicationRequestSchema, create(CreateApplicationRequestSchema, { name })),
  });
  const { bytes } = await post(url, encodeBatch([call('held', 20), call('large', 5_000), call('free', 10 ** 12)]));
  const codes = decodeBatch<{ isError: boolean }>(bytes).map(
    ({ facts, message }) => facts.isError && JSON.parse(Buffer.from(message).toString()).code,
  );
  expect(codes).toEqual(['deadline_exceeded', 'resource_exhausted', false]);
  expect(left.map((ms) => Math.ceil(ms / 1_000))).toEqual([1, 5, 60]);
});
