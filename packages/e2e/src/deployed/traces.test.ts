import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, expect, inject, it } from 'vitest';
import type { Answer } from '../client/api.ts';
import { plain, uploadAvatar } from '../client/avatars.ts';
import { createApplication, createKey, type Key, type Owner, PASSWORD, sharedApi, signUp, unique } from '../client/caller.ts';
import { upload } from '../client/files.ts';
import { setSetting } from '../client/live.ts';
import { OtlpReader, type ReceivedSpan } from '../fakes/otlp-receiver.ts';
import { findLogLines } from '../instance/instance.ts';
import '../instance/shared-instance.ts';

const CLIENT_TRACE = '0af7651916cd43dd8448eb211c80319c';

const { tracesUrl, logDir } = inject('latchkeyInstance');
const received = new OtlpReader(tracesUrl);
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
  await received.read();
});

const idOf = ({ headers }: Answer) => headers.get('x-request-id') ?? '';
const logLines = async (text: string) => (await findLogLines(logDir, text)).map((line) => JSON.parse(line));

/** The trace of a request, once the check passes. */
async function traceOf(answer: Answer, check = (trace: readonly ReceivedSpan[]) => expect(trace).not.toEqual([])) {
  const attempt = async () => {
    await received.read();
    const root = received.spans.find(({ attributes }) => attributes['latchkey.request_id'] === idOf(answer));
    const trace = received.spans.filter(({ traceId }) => traceId === root?.traceId);
    check(trace);
    return trace;
  };
  return eventually(attempt, { timeoutMs: 15_000, intervalMs: 100 });
}

/** A span of a service and those that it lies in, from within. */
function pathOf(trace: readonly ReceivedSpan[], name: string, service: string): string[] {
  const path: string[] = [];
  for (let span = trace.find((one) => one.name === name && one.service === `latchkey-${service}`); span; ) {
    path.push(`${span.service} ${span.name}`);
    const { parentId } = span;
    span = trace.find(({ spanId }) => spanId === parentId);
  }
  return path;
}

it('a trace goes from the gateway to a service and its statements', async () => {
  const answer = await setSetting(key.api, applicationId, 'status', 'paused');
  const route = 'PATCH /api/v1/panel/update-application-settings';
  const method = 'latchkey.apps.v1.ApplicationService/UpdateApplicationSetting';
  const path = [`latchkey-apps ${method}`, `latchkey-gateway ${method}`, `latchkey-gateway ${route}`];
  const trace = await traceOf(answer, (spans) => expect(pathOf(spans, method, 'apps')).toEqual(path));
  const statements = trace
    .filter(({ attributes }) => attributes['db.system.name'] === 'postgresql')
    .map(({ name }) => name)
    .join();
  for (const statement of ['INSERT application_event', 'COMMIT']) expect(statements).toContain(statement);
});

it('a trace goes with the bytes of a file, and with an image to its worker and on to identity', async () => {
  const uploaded = await upload(key.api, applicationId, unique());
  const route = 'POST /api/v1/panel/upload-file';
  await traceOf(uploaded, (spans) => expect(pathOf(spans, 'object-store put', 'files').at(-1)).toContain(route));
  const avatar = await uploadAvatar(owner.session, await plain(20, 20).png().toBuffer());
  const set = 'latchkey.identity.v1.AccountService/SetAvatar';
  const made = await traceOf(avatar, (spans) =>
    expect(pathOf(spans, set, 'identity')).toContain('latchkey-files process avatar'),
  );
  const decoded = { requestId: idOf(avatar), trace_id: made[0]?.traceId };
  await eventually(async () => expect(await logLines('"avatar decoded"')).toContainEqual(expect.objectContaining(decoded)));
});

it('a trace is named in the log lines of every process, and is not the client’s own, which it links to', async () => {
  const caller = key.api.with({ traceparent: `00-${CLIENT_TRACE}-b7ad6b7169203331-01` });
  const answer = await caller.get('/api/v1/panel/get-application-settings', { applicationId });
  const [root] = await traceOf(answer);
  await eventually(async () => {
    const lines = await logLines(idOf(answer));
    expect(lines.find(({ msg }) => msg === 'request')).toMatchObject({ service: 'gateway', trace_id: root?.traceId });
    expect(lines.find(({ service }) => service === 'apps')).toMatchObject({ msg: 'rpc', trace_id: root?.traceId });
  });
  expect(received.spans.filter(({ traceId }) => traceId === CLIENT_TRACE)).toEqual([]);
  const first = received.spans.find(({ traceId, parentId }) => traceId === root?.traceId && parentId === '');
  expect(first?.links).toEqual([CLIENT_TRACE]);
});

it('traces begin with requests alone, and hold no secret, query or name that a client chose', async () => {
  const [fileName, asked] = [unique(), unique()];
  expect((await upload(key.api, applicationId, fileName)).status).toBe(200);
  await sharedApi().post('/api/v1/auth/sign-in', { email: owner.email, password: PASSWORD });
  await traceOf(await key.api.post('/api/v1/panel/check-file-name', { fileName: asked }, { applicationId }));
  for (const { name } of received.spans.filter(({ parentId }) => parentId === ''))
    expect(name).toMatch(/^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) |\/CreateDownloadUrl$/);
  for (const secret of [key.text, PASSWORD, owner.email, fileName, asked, 'applicationId='])
    expect(received.sent).not.toContain(secret);
});
