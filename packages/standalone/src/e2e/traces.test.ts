import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { plain, uploadAvatar } from '../testing/avatars.ts';
import { createApplication, createKey, type Key, type Owner, PASSWORD, signUp, unique } from '../testing/caller.ts';
import { upload } from '../testing/files.ts';
import { findLogLines } from '../testing/instance.ts';
import { setSetting } from '../testing/live.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../testing/otlp-receiver.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

const isDeployed = inject('latchkeyInstance').shape === 'deployed';
/** The service of a span, where each is a process. */
const serviceOf = (name: string) => (isDeployed ? `latchkey-${name}` : 'latchkey-standalone');
const CLIENT_TRACE = '0af7651916cd43dd8448eb211c80319c';

let receiver: OtlpReceiver;
let instance: OwnInstance;
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, LOG_LEVEL: 'debug', OTEL_BSP_SCHEDULE_DELAY: '100' };
  instance = await startOwnInstance({ env });
  owner = await signUp(instance.api);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
});
afterAll(async () => {
  await instance.stop();
  receiver.close();
});

const idOf = ({ headers }: Answer) => headers.get('x-request-id') ?? '';
const logLines = async (text: string) => (await findLogLines(instance.logDir, text)).map((line) => JSON.parse(line));

/** The trace of a request, once it has a span of each name. */
async function traceOf(answer: Answer, ...names: string[]): Promise<ReceivedSpan[]> {
  const attempt = () => {
    const root = receiver.spans.find(({ attributes }) => attributes['latchkey.request_id'] === idOf(answer));
    const trace = receiver.spans.filter(({ traceId }) => traceId === root?.traceId);
    expect(trace.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
    return trace;
  };
  return eventually(attempt, { timeoutMs: 15_000 });
}

/** A span of a service and those that it lies in, from within. */
function pathOf(trace: readonly ReceivedSpan[], name: string, service: string): string[] {
  const path: string[] = [];
  for (let span = trace.find((one) => one.name === name && one.service === serviceOf(service)); span; ) {
    path.push(`${span.service} ${span.name}`);
    const { parentId } = span;
    span = trace.find(({ spanId }) => spanId === parentId);
  }
  return path;
}

it('a trace goes from the gateway through the services and the queue to the worker', async () => {
  const answer = await setSetting(key.api, applicationId, 'status', 'paused');
  const route = 'PATCH /api/v1/panel/update-application-settings';
  const method = 'latchkey.apps.v1.ApplicationService/UpdateApplicationSetting';
  const trace = await traceOf(answer, route, method, 'send realtime', 'process realtime');
  const calls = isDeployed ? [`latchkey-apps ${method}`, `latchkey-gateway ${method}`] : [`latchkey-standalone ${method}`];
  const path = [`${serviceOf('realtime')} process realtime`, `${serviceOf('apps')} send realtime`, ...calls];
  expect(pathOf(trace, 'process realtime', 'realtime')).toEqual([...path, `${serviceOf('gateway')} ${route}`]);
  const statements = trace
    .filter(({ attributes }) => attributes['db.system.name'] === 'postgresql')
    .map(({ name }) => name)
    .join();
  for (const statement of ['INSERT application_event', 'COMMIT']) expect(statements).toContain(statement);
});

it('a trace goes with the bytes of a file, and with an image to its worker and on to identity', async () => {
  const uploaded = await upload(key.api, applicationId, unique());
  const trace = await traceOf(uploaded, 'POST /api/v1/panel/upload-file', 'object-store put');
  expect(pathOf(trace, 'object-store put', 'files').at(-1)).toContain('POST /api/v1/panel/upload-file');
  const avatar = await uploadAvatar(owner.session, await plain(20, 20).png().toBuffer());
  const set = 'latchkey.identity.v1.AccountService/SetAvatar';
  const made = await traceOf(avatar, 'process avatar', set);
  expect(pathOf(made, set, 'identity')).toContain(`${serviceOf('files')} process avatar`);
  const decoded = { requestId: idOf(avatar), trace_id: made[0]?.traceId };
  await eventually(async () => expect(await logLines('"avatar decoded"')).toEqual([expect.objectContaining(decoded)]));
});

it('a trace is named in the log lines of every process, and is not the client’s own, which it links to', async () => {
  const caller = key.api.with({ traceparent: `00-${CLIENT_TRACE}-b7ad6b7169203331-01` });
  const answer = await caller.get('/api/v1/panel/get-application-settings', { applicationId });
  const [root] = await traceOf(answer, 'GET /api/v1/panel/get-application-settings');
  await eventually(async () => {
    const lines = await logLines(idOf(answer));
    expect(lines.find(({ msg }) => msg === 'request')).toMatchObject({ service: 'gateway', trace_id: root?.traceId });
    if (isDeployed)
      expect(lines.find(({ service }) => service === 'apps')).toMatchObject({ msg: 'rpc', trace_id: root?.traceId });
  });
  expect(receiver.spans.filter(({ traceId }) => traceId === CLIENT_TRACE)).toEqual([]);
  const first = receiver.spans.find(({ traceId, parentId }) => traceId === root?.traceId && parentId === '');
  expect(first?.links).toEqual([CLIENT_TRACE]);
});

it('traces begin with requests alone, and hold no secret, query or name that a client chose', async () => {
  const [fileName, asked] = [unique(), unique()];
  expect((await upload(key.api, applicationId, fileName)).status).toBe(200);
  await instance.api.post('/api/v1/auth/sign-in', { email: owner.email, password: PASSWORD });
  await traceOf(
    await key.api.post('/api/v1/panel/check-file-name', { fileName: asked }, { applicationId }),
    'POST /api/v1/panel/check-file-name',
  );
  const names = receiver.spans.filter(({ parentId }) => parentId === '').map(({ name }) => name.split(' ')[0]);
  expect(new Set(names)).toEqual(new Set(['GET', 'POST', 'PATCH']));
  const sent = Buffer.concat(receiver.bodies).toString('latin1');
  for (const secret of [key.text, PASSWORD, owner.email, fileName, asked, 'applicationId=']) expect(sent).not.toContain(secret);
});
