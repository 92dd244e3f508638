import { request } from 'node:http';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { plain, uploadAvatar } from '../testing/avatars.ts';
import { createApplication, createKey, type Key, type Owner, PASSWORD, signUp, unique } from '../testing/caller.ts';
import { upload } from '../testing/files.ts';
import { findLogLines } from '../testing/instance.ts';
import { setSetting } from '../testing/live.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../testing/otlp-receiver.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

const isDeployed = inject('latchkeyInstance').shape === 'deployed';
/** The service that a span is of, where each is a process. */
const serviceOf = (name: string) => (isDeployed ? `latchkey-${name}` : 'latchkey-standalone');
const CLIENT_TRACE = '0af7651916cd43dd8448eb211c80319c';
const CLIENT_TRACEPARENT = `00-${CLIENT_TRACE}-b7ad6b7169203331-01`;
const FAST = { OTEL_BSP_SCHEDULE_DELAY: '100' };

let receiver: OtlpReceiver;
let instance: OwnInstance;
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  instance = await startOwnInstance({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, LOG_LEVEL: 'debug', ...FAST } });
  owner = await signUp(instance.api);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
});
afterAll(async () => {
  await instance.stop();
  receiver.close();
});

const idOf = ({ headers }: Answer) => headers.get('x-request-id') ?? '';

/** The trace of a request, once it has a span of each name. */
async function traceOf(answer: Answer, ...names: string[]): Promise<ReceivedSpan[]> {
  let trace: ReceivedSpan[] = [];
  await eventually(
    () => {
      const root = receiver.spans.find(({ attributes }) => attributes['latchkey.request_id'] === idOf(answer));
      trace = receiver.spans.filter(({ traceId }) => traceId === root?.traceId);
      expect(trace.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
    },
    { timeoutMs: 15_000 },
  );
  return trace;
}

const find = (trace: readonly ReceivedSpan[], name: string, service?: string) => {
  const found = trace.find((span) => span.name === name && (service === undefined || span.service === service));
  if (!found) throw new Error(`There is no span ${name} of ${service}: ${trace.map((span) => `${span.service} ${span.name}`)}`);
  return found;
};

/** The names of the spans that one lies in, from within. */
function pathOf(trace: readonly ReceivedSpan[], span: ReceivedSpan): string[] {
  const parent = trace.find(({ spanId }) => spanId === span.parentId);
  return [`${span.service} ${span.name}`, ...(parent ? pathOf(trace, parent) : [])];
}

describe('a trace', () => {
  it('goes from the gateway through the services and the queue to whoever works on it', async () => {
    const answer = await setSetting(key.api, applicationId, 'status', 'paused');
    const route = 'PATCH /api/v1/panel/update-application-settings';
    const method = 'latchkey.apps.v1.ApplicationService/UpdateApplicationSetting';
    const trace = await traceOf(answer, route, method, 'send realtime', 'process realtime');
    const job = find(trace, 'process realtime', serviceOf('realtime'));
    const calls = isDeployed ? [`latchkey-apps ${method}`, `latchkey-gateway ${method}`] : [`latchkey-standalone ${method}`];
    const path = [`${serviceOf('realtime')} process realtime`, `${serviceOf('apps')} send realtime`, ...calls];
    expect(pathOf(trace, job)).toEqual([...path, `${serviceOf('gateway')} ${route}`]);
    const statements = trace.filter(({ attributes }) => attributes['db.system.name'] === 'postgresql').map(({ name }) => name);
    expect(statements).toEqual(
      expect.arrayContaining(['INSERT application_event', 'COMMIT'].map((text) => expect.stringContaining(text))),
    );
  });

  it('goes with the bytes of a file, and with an image to its worker and on to identity', async () => {
    const uploaded = await upload(key.api, applicationId, unique());
    expect(uploaded.text).toContain('File uploaded.');
    const trace = await traceOf(uploaded, 'POST /api/v1/panel/upload-file', 'object-store put');
    expect(pathOf(trace, find(trace, 'object-store put', serviceOf('files'))).at(-1)).toContain('POST /api/v1/panel/upload-file');
    const avatar = await uploadAvatar(owner.session, await plain(20, 20).png().toBuffer());
    const set = 'latchkey.identity.v1.AccountService/SetAvatar';
    const made = await traceOf(avatar, 'process avatar', set);
    expect(pathOf(made, find(made, set, serviceOf('identity')))).toContain(`${serviceOf('files')} process avatar`);
    await eventually(async () => {
      const decoded = (await findLogLines(instance.logDir, '"avatar decoded"')).map((line) => JSON.parse(line));
      expect(decoded).toEqual([expect.objectContaining({ requestId: idOf(avatar), trace_id: made[0]?.traceId })]);
    });
  });

  it('goes on where the body comes later than the headers', async () => {
    const id = unique('request-');
    const headers = { ...key.api.headers, 'content-type': 'application/json', expect: '100-continue', 'x-request-id': id };
    const req = request(`${instance.baseUrl}/api/v1/panel/create-application`, { method: 'POST', headers });
    req.once('continue', () => req.end(JSON.stringify({ name: unique('app-') })));
    req.flushHeaders();
    const status = await new Promise((resolve) => req.once('response', (res) => resolve(res.resume().statusCode)));
    expect(status).toBe(200);
    const answer = { headers: new Headers({ 'x-request-id': id }) } as Answer;
    await traceOf(answer, 'POST /api/v1/panel/create-application', 'latchkey.apps.v1.ApplicationService/CreateApplication');
  });

  it('has the id of the request, and is named in the log lines of every process', async () => {
    const answer = await key.api.get('/api/v1/panel/get-application-settings', { applicationId });
    const [root] = await traceOf(answer, 'GET /api/v1/panel/get-application-settings');
    await eventually(async () => {
      const lines = (await findLogLines(instance.logDir, idOf(answer))).map((line) => JSON.parse(line));
      expect(lines.find(({ msg }) => msg === 'request')).toMatchObject({ service: 'gateway', trace_id: root?.traceId });
      if (isDeployed)
        expect(lines.find(({ service }) => service === 'apps')).toMatchObject({ msg: 'rpc', trace_id: root?.traceId });
    });
  });

  it('is none of a client, whose own is linked to', async () => {
    const answer = await key.api.with({ traceparent: CLIENT_TRACEPARENT }).get('/api/v1/panel/get-applications');
    const [first] = await traceOf(answer, 'GET /api/v1/panel/get-applications');
    const root = receiver.spans.find(({ spanId, traceId }) => traceId === first?.traceId && spanId === first?.spanId);
    expect(receiver.spans.filter(({ traceId }) => traceId === CLIENT_TRACE)).toEqual([]);
    expect(receiver.spans.find(({ traceId, parentId }) => traceId === root?.traceId && parentId === '')?.links).toEqual([
      CLIENT_TRACE,
    ]);
  });

  it('is not begun by what services look for by themselves, and holds no secret, query or name that a client chose', async () => {
    const [fileName, asked] = [unique(), unique()];
    expect((await upload(key.api, applicationId, fileName)).status).toBe(200);
    await instance.api.post('/api/v1/auth/sign-in', { email: owner.email, password: PASSWORD });
    const answer = await key.api.post('/api/v1/panel/check-file-name', { fileName: asked }, { applicationId });
    await traceOf(answer, 'POST /api/v1/panel/check-file-name');
    const names = receiver.spans.filter(({ parentId }) => parentId === '').map(({ name }) => name.split(' ')[0]);
    expect(new Set(names)).toEqual(new Set(['GET', 'POST', 'PATCH']));
    const sent = Buffer.concat(receiver.bodies).toString('latin1');
    const secrets = [key.text, PASSWORD, owner.email, fileName, asked, 'applicationId='];
    expect(secrets.filter((secret) => sent.includes(secret))).toEqual([]);
  });
});
