import { execFile } from 'node:child_process';
import { hash, randomBytes } from 'node:crypto';
import { request as plainRequest } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { migrations as appsMigrations } from '@latchkey/apps/db/migrations';
import { migrations as filesMigrations } from '@latchkey/files/db/migrations';
import { migrations as identityMigrations } from '@latchkey/identity/db/migrations';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { createAuthority, type TestAuthority, writeTlsFiles } from '@latchkey/testkit/network/certificates';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { type Answer, Api } from '../client/api.ts';
import { getAvatar, plain, UPLOAD_AVATAR, uploadAvatar } from '../client/avatars.ts';
import { cookieOf, createApplication, createKey, PASSWORD, signUp } from '../client/caller.ts';
import { METADATA, MIB, outcome, UPLOAD, upload } from '../client/files.ts';
import { openGrpc, RPC_SERVICES, type Tls } from '../client/grpc.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import { uploadHead } from '../client/routes.ts';
import { startUpload } from '../client/running-upload.ts';
import { type Fleet, type FleetProcess, startFleet } from '../instance/fleet/fleet.ts';
import { findLogLines, SERVICE_CREDENTIAL } from '../instance/instance.ts';

const MIGRATIONS = { apps: appsMigrations, files: filesMigrations, identity: identityMigrations };
const PER_ADDRESS = 60;
const PER_PRINCIPAL = 40;
const SIGN_INS = 10;
const UPLOADS = 8;
const SERVICES = Object.keys(RPC_SERVICES) as Array<keyof typeof RPC_SERVICES>;
const REFUSED = `${status.UNAUTHENTICATED} a service credential is required`;
/** Statuses with which no call may end. */
const DEFECTS: readonly number[] = [status.UNKNOWN, status.INTERNAL, status.UNIMPLEMENTED];
const CREDENTIAL = `Bearer ${SERVICE_CREDENTIAL}`;
const APPLICATIONS = '/api/v1/panel/get-applications';
const RESUMABLE = '/api/v1/panel/uploads';
/** One row for each upload with a key that has begun: true once its process has ended. */
const RUNNING = `
  select pg_try_advisory_xact_lock_shared(process_lock) as is_free from (
    select process_lock from files.upload_intent where state = 'receiving' and idempotency_id is not null
    union all select process_lock from files.avatar where state = 'waiting' and idempotency_id is not null
    union all select process_lock from files.resumable_upload where claim_id is not null and claim_call is not null) running`;

/** Head of a request whose body is sent in part. */
type Part = { readonly method: string; readonly path: string; readonly headers: Readonly<Record<string, string>> };

/** Slow, as the limits of this fleet are low. */
const READY = { timeoutMs: 30_000, intervalMs: 800 };

const settingsOf = (api: Api, applicationId: string) => api.get('/api/v1/panel/get-application-settings', { applicationId });

/** Limits and revocations of one process apply in the other immediately (R5, S7). */
describe.runIf(inject('latchkeyInstance').shape === 'deployed')('two gateways over two of each service, with TLS', () => {
  let fleet: Fleet;
  let authority: TestAuthority;
  let tls: Tls;
  let addresses = 0;
  beforeAll(async () => {
    authority = await createAuthority();
    tls = { ...(await authority.issue()), ca: authority.ca };
    fleet = await startFleet({
      ...{ tls: authority, avatarWorkers: 1 },
      env: {
        TRUSTED_PROXIES: 'loopback',
        RATE_LIMIT_IP_PER_MINUTE: String(PER_ADDRESS),
        RATE_LIMIT_PRINCIPAL_PER_MINUTE: String(PER_PRINCIPAL),
        AUTH_ATTEMPTS_PER_MINUTE: String(SIGN_INS),
        UPLOAD_ATTEMPTS_PER_MINUTE: String(UPLOADS),
      },
    });
  });
  afterAll(() => fleet?.stop());

  const newAddress = () => ({ 'x-forwarded-for': `198.51.100.${++addresses}` });
  /** The same caller at one of the gateways, in turn; `elsewhere` also from a new address. */
  const at = (api: Api, gateway: number) => new Api(fleet.gateways[gateway % 2]?.baseUrl ?? '', api.headers);
  const elsewhere = (api: Api, gateway: number) => at(api, gateway).with(newAddress());
  const newOwner = () => signUp(fleet.api.with(newAddress()));
  /** Sends requests at the same time to both gateways, and counts the statuses. */
  async function spread(count: number, send: (gateway: number) => Promise<Answer>): Promise<Record<number, number>> {
    const answers: Answer[] = [];
    // A gateway that waits over 250 ms for Redis counts by itself, as it may on a busy machine.
    while (answers.length < count) {
      const first = answers.length;
      answers.push(...(await Promise.all(Array.from({ length: Math.min(10, count - first) }, (_, i) => send(first + i)))));
    }
    return Object.fromEntries([...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]));
  }

  it('have applied each migration once, though all processes began to at the same time', async () => {
    await withClient(fleet.databaseUrl, async (client) => {
      for (const [schema, all] of Object.entries(MIGRATIONS)) {
        const { rows } = await client.query(`select name from ${schema}.kysely_migration order by name`);
        expect(rows.map(({ name }) => name)).toEqual(Object.keys(all));
      }
    });
    expect(await findLogLines(fleet.logDir, 'start failed')).toEqual([]);
  });

  it('reject on the next request what the other one ended: keys, scopes and sessions', async () => {
    const ends = [
      [(session: Api, path: string) => session.post(`${path}/revoke`), '401 api_key_revoked'],
      [(session: Api, path: string) => session.patch(path, { scopes: ['files:read'] }), '403 insufficient_scope'],
    ] as const;
    for (const gateway of [0, 1]) {
      const { session } = await newOwner();
      for (const [end, code] of ends) {
        const { api, id } = await createKey({ ...(await newOwner()), session: elsewhere(session, 0) });
        for (let i = 0; i < 3; i += 1) expect(outcome(await elsewhere(api, gateway + 1).get(APPLICATIONS))).toBe('200');
        expect(outcome(await end(elsewhere(session, gateway), `/api/v1/panel/api-keys/${id}`))).toBe('200');
        expect(outcome(await elsewhere(api, gateway + 1).get(APPLICATIONS))).toBe(code);
      }
      const other = elsewhere(session, gateway + 1);
      expect(outcome(await other.get('/api/v1/auth/session'))).toBe('200');
      expect(outcome(await elsewhere(session, gateway).post('/api/v1/auth/sign-out'))).toBe('200');
      expect(outcome(await other.get('/api/v1/auth/session'))).toBe('401 unauth');
    }
  });

  it('and both realtime nodes end a rotated socket key and a deleted application, and deliver events in order', async () => {
    const { email } = await newOwner();
    const signedIn = await elsewhere(fleet.api, 1).post('/api/v1/auth/sign-in', { email, password: PASSWORD });
    const session = fleet.api.with({ cookie: cookieOf(signedIn.headers), 'x-csrf-token': signedIn.data.csrfToken });
    const applicationId = await createApplication(elsewhere(session, 0));
    const socketKey = await readSocketKey(elsewhere(session, 1), applicationId);
    const clients = [0, 1, 2, 3].map(() => new LiveClient(fleet.realtimeUrl, socketKey));
    await Promise.all(clients.map((client) => client.ready()));
    expect(fleet.processesOf('realtime').every(({ accepted }) => accepted > 0)).toBe(true);
    for (let i = 1; i <= 6; i += 1) await setSetting(elsewhere(session, i), applicationId, 'version', `1.${i}`);
    for (const client of clients)
      await eventually(() => expect([client.sequences(), client.flaws]).toEqual([[1, 2, 3, 4, 5, 6], []]));
    const rotate = elsewhere(session, 0).patch('/api/v1/panel/update-api-keys', { type: 'socketKey' }, { applicationId });
    expect(outcome(await rotate)).toBe('200');
    expect(await new LiveClient(fleet.realtimeUrl, socketKey).ended).toBe(401);
    expect(await Promise.all(clients.map(({ ended }) => ended))).toEqual(Array(4).fill(4103));
    await elsewhere(session, 0).delete('/api/v1/panel/delete-application', { applicationId, code: '' });
    expect(outcome(await settingsOf(elsewhere(session, 1), applicationId))).toBe('404 not_found');
  });

  it('share the limits of addresses, keys, sign-ins, uploads and rotations', async () => {
    const client = newAddress();
    expect(await spread(PER_ADDRESS * 2, (i) => at(fleet.api, i).with(client).get('/nowhere'))).toEqual({
      404: PER_ADDRESS,
      429: PER_ADDRESS,
    });
    const owner = await newOwner();
    const { api } = await createKey(owner);
    expect(await spread(PER_PRINCIPAL * 2, (i) => elsewhere(api, i).get(APPLICATIONS))).toEqual({
      200: PER_PRINCIPAL,
      429: PER_PRINCIPAL,
    });
    const address = newAddress();
    const signIn = (i: number) =>
      at(fleet.api, i).with(address).post('/api/v1/auth/sign-in', { email: owner.email, password: PASSWORD });
    expect(await spread(SIGN_INS * 2, signIn)).toEqual({ 200: SIGN_INS, 429: SIGN_INS });
    const { session } = await newOwner();
    const applicationId = await createApplication(elsewhere(session, 0));
    const keys = [
      (await createKey({ ...owner, session: elsewhere(session, 0) })).api,
      (await createKey({ ...owner, session: elsewhere(session, 1) })).api,
    ];
    const rotate = (i: number) =>
      elsewhere(keys[i % 2] ?? api, i >> 1).patch(
        '/api/v1/panel/update-api-keys',
        { type: i % 3 ? 'socketKey' : 'httpKey' },
        { applicationId },
      );
    expect(await spread(50, rotate)).toEqual({ 200: 2, 429: 48 });
    // One upload at a time over both, and the next as soon as it has ended.
    const running = await startUpload(elsewhere(session, 0), { applicationId, fileName: 'first' });
    await running.send(new Uint8Array(1_000));
    expect(outcome(await upload(elsewhere(session, 1), applicationId, 'second'))).toBe('429 rate_limit_reached');
    expect(outcome(await running.finish())).toBe('200');
    const statuses = [];
    for (let i = 2; i < UPLOADS + 2; i += 1)
      statuses.push((await upload(elsewhere(session, i), applicationId, i === 3 ? '..' : `file-${i}`)).status);
    expect(statuses).toEqual([200, 400, ...Array(UPLOADS - 4).fill(200), 429, 429]);
    // Concurrent calls went to both processes of each service.
    for (const service of ['apps', 'identity'] as const)
      expect(
        fleet.processesOf(service).every(({ accepted }) => accepted > 0),
        service,
      ).toBe(true);
  });

  it('do their work together: calls, uploads and avatars, and a program with a certificate like the example', async () => {
    const owner = await newOwner();
    const avatar = await uploadAvatar(elsewhere(owner.session, 0), await plain(64, 64).png().toBuffer());
    expect(outcome(avatar)).toBe('200');
    expect((await getAvatar(elsewhere(owner.session, 1))).headers.get('content-type')).toBe('image/webp');
    const applicationId = await createApplication(owner.session, 'Example application');
    expect(outcome(await upload(owner.session, applicationId, 'release', 'the release'))).toBe('200');
    const { httpKey } = (await owner.session.get(APPLICATIONS)).data[0].applicationApiKeys;
    const { code, out, err } = await runExample(httpKey);
    const [first, url = ''] = out.split('\n');
    expect([code, err, first]).toEqual([0, '', 'Example application: release']);
    expect(await (await fetch(url)).text()).toBe('the release');
    const unknown = await runExample(`lk_http_${'x'.repeat(32)}`);
    expect(unknown).toEqual({ code: 1, out: '', err: 'There is no application with this key.\n' });
    const refused = await runExample(httpKey, { LATCHKEY_CREDENTIAL: 'wrong' });
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/^a service credential is required \(request [\da-f-]{36}\)\n$/),
    ]);
  });

  it('continue uploads at the other gateway and another files process, when the first was killed, also with their keys', async () => {
    const [first, second] = fleet.processesOf('files') as [FleetProcess, FleetProcess];
    const [{ session }, { session: other }] = [await newOwner(), await newOwner()];
    const [applicationId, keyedId] = [await createApplication(session), await createApplication(other)];
    const [bytes, image] = [randomBytes(12 * MIB), await plain(64, 64).png().toBuffer()];
    const create = async (api: Api, id: string, byteSize: number) => {
      const headers = uploadHead(id, 'moved', byteSize);
      return `${RESUMABLE}/${(await elsewhere(api, 0).post(RESUMABLE, null, {}, { headers })).data.id}`;
    };
    const path = await create(session, applicationId, bytes.length);
    const chunkHeaders = (byteOffset: number) => ({
      ...{ 'tus-resumable': '1.0.0', 'content-type': 'application/offset+octet-stream', 'upload-offset': String(byteOffset) },
    });
    const keyHeaders = {
      ...{ 'content-type': 'application/octet-stream', 'idempotency-key': 'killed' },
      'content-digest': `sha-256=:${hash('sha256', image, 'base64')}:`,
    };
    const keyed: Part[] = [
      { method: 'POST', path: `${UPLOAD}?applicationId=${keyedId}&fileName=whole`, headers: keyHeaders },
      { method: 'POST', path: UPLOAD_AVATAR, headers: keyHeaders },
      { method: 'PATCH', path: await create(other, keyedId, image.length), headers: { ...keyHeaders, ...chunkHeaders(0) } },
    ];
    const offset = async (gateway: number) => (await elsewhere(session, gateway).get(path)).data.byteOffset as number;
    /** Sends a part of a body; resolves with the status of the response, or an error. */
    const sendPart = (api: Api, { method, path, headers }: Part, part: Uint8Array, byteSize: number) => {
      const { baseUrl, headers: caller } = elsewhere(api, 0);
      const options = { method, agent: false, headers: { ...caller, ...headers, 'content-length': byteSize } };
      const req = plainRequest(baseUrl + path, options);
      onTestFinished(() => void req.destroy());
      const broken = new Promise((resolve) => req.on('response', (res) => resolve(res.resume().statusCode)).on('error', resolve));
      req.write(part);
      return broken;
    };
    // All bytes go to the first process.
    await second.kill();
    const chunk = { method: 'PATCH', path, headers: chunkHeaders(0) };
    const broken = [sendPart(session, chunk, bytes.subarray(0, 11 * MIB), bytes.length)];
    // Bytes are recorded every 10 MiB.
    await eventually(async () => expect(await offset(0)).toBe(10 * MIB), READY);
    for (const one of keyed) broken.push(sendPart(other, one, image.subarray(0, 10), image.length));
    await withClient(fleet.databaseUrl, async (client) => {
      const areFree = async () => (await client.query(RUNNING)).rows.map(({ is_free: isFree }) => isFree);
      await eventually(async () => expect(await areFree()).toEqual([false, false, false]), READY);
      await first.kill();
      // Leases outlast the test: only the end of the process frees the keys.
      for (const table of ['upload_intent', 'resumable_upload'])
        await client.query(`update files.${table} set lease_until = now() + interval '1 hour' where process_lock is not null`);
      await eventually(async () => expect(await areFree()).toEqual([true, true, true]), READY);
    });
    await second.start();
    for (const { method, path, headers } of keyed) {
      const repeated = await eventually(async () => {
        const answer = await elsewhere(other, 1).send(method, path, { body: image, headers, mayFail: true });
        // A gateway may not know yet that the process has ended.
        expect(answer.status).not.toBe(503);
        return answer;
      }, READY);
      expect([outcome(repeated), repeated.headers.get('idempotency-replayed')]).toEqual([
        expect.stringMatching(/^20[04]$/),
        null,
      ]);
      const replayed = await elsewhere(other, 0).send(method, path, { body: image, headers });
      expect([replayed.text, replayed.headers.get('idempotency-replayed')]).toEqual([repeated.text, 'true']);
    }
    for (const end of broken) expect(await end).not.toBe(204);
    const last = await eventually(async () => {
      const byteOffset = await offset(1);
      expect(byteOffset).toBeGreaterThanOrEqual(10 * MIB);
      const options = { headers: chunkHeaders(byteOffset), mayFail: true };
      const answer = await elsewhere(session, 1).patch(path, bytes.subarray(byteOffset), {}, options);
      expect(answer.status).toBe(204);
      return answer;
    }, READY);
    expect(last.headers.get('x-file-checksum')).toBe(hash('sha256', bytes));
    await first.start();
    for (const [api, id, totalFiles] of [
      [session, applicationId, 1],
      [other, keyedId, 2],
    ] as const) {
      const file = await elsewhere(api, 0).get(METADATA, { applicationId: id });
      expect(file.data).toMatchObject({ totalFiles });
    }
  });

  it('execute a change again whose process was killed before its end, with the same idempotency key', async () => {
    const { session } = await newOwner();
    const applicationId = await createApplication(session);
    const change = (gateway: number) =>
      elsewhere(session, gateway)
        .with({ 'idempotency-key': 'killed' })
        .patch(
          '/api/v1/panel/update-application-settings',
          { field: 'version', value: '2.0' },
          { applicationId },
          { mayFail: true },
        );
    const apps = fleet.processesOf('apps');
    await withClient(fleet.databaseUrl, async (client) => {
      await client.query('begin');
      await client.query('select from apps.application where id = $1 for update', [applicationId]);
      const lost = change(0);
      // It has the lock of its key, and waits for the application.
      await withClient(fleet.databaseUrl, (observer) =>
        eventually(async () => {
          const { rows } = await observer.query(
            "select from pg_locks where locktype = 'advisory' and pid in (select pid from pg_locks where not granted)",
          );
          return rows.length > 0;
        }, READY),
      );
      await Promise.all(apps.map((one) => one.kill()));
      expect((await lost).status).toBe(503);
      await client.query('rollback');
    });
    await Promise.all(apps.map((one) => one.start()));
    const repeated = await eventually(async () => {
      const answer = await change(1);
      expect(outcome(answer)).toBe('200');
      return answer;
    }, READY);
    expect(repeated.headers.get('idempotency-replayed')).toBeNull();
    const { data } = await elsewhere(session, 0).get('/api/v1/panel/events', { applicationId });
    expect(data.events).toHaveLength(1);
    expect((await change(0)).headers.get('idempotency-replayed')).toBe('true');
  });

  it('accept both management keys during the overlap of a rotation, and only the new one after it', async () => {
    const owner = await newOwner();
    const old = await createKey({ ...owner, session: elsewhere(owner.session, 0) });
    const address = newAddress();
    const send = (api: Api, gateway: number) => at(api, gateway).with(address).get(APPLICATIONS);
    // Both gateways have the old key in their cache, without an expiry, for longer than the
    // overlap.
    for (const gateway of [0, 1]) expect(outcome(await send(old.api, gateway))).toBe('200');
    const path = `/api/v1/panel/api-keys/${old.id}`;
    const { data: created } = await elsewhere(owner.session, 0).post(`${path}/rotate`, { overlapSeconds: 1 });
    const next = fleet.api.with({ authorization: `Bearer ${created.plaintextKey}` });
    const expiresAt = Date.parse((await elsewhere(owner.session, 1).get(path)).data.expiresAt);
    const seen = { during: new Set<string>(), after: new Set<string>(), next: new Set<string>() };
    for (let i = 0; seen.after.size < 2; i += 1) {
      const sentAt = Date.now();
      const answer = `${i % 2} ${outcome(await send(old.api, i))}`;
      if (Date.now() < expiresAt) seen.during.add(answer);
      else if (sentAt >= expiresAt) seen.after.add(answer);
      seen.next.add(outcome(await send(next, i)));
      if (Date.now() < expiresAt) await delay(150);
    }
    expect([...seen.during].filter((answer) => !answer.endsWith('200'))).toEqual([]);
    expect([...seen.after].filter((answer) => !answer.endsWith('401 api_key_expired'))).toEqual([]);
    expect([...seen.next]).toEqual(['200']);
  });

  it('answer Health/Check without the credential, and no other call', async () => {
    const open = (service: keyof typeof RPC_SERVICES, certificate = tls) => {
      const opened = openGrpc(fleet.process(service).grpc ?? '', certificate);
      onTestFinished(opened.close);
      return opened;
    };
    for (const service of SERVICES) {
      const { call } = open(service);
      const methods = RPC_SERVICES[service].flatMap((one) => one.methods) as DescMethodUnary[];
      for (const method of methods) {
        for (const authorization of [undefined, 'Bearer wrong'])
          expect(await call(method, authorization), method.name).toBe(REFUSED);
        const answered = await call(method, CREDENTIAL);
        expect(answered, method.name).not.toBe(REFUSED);
        expect(DEFECTS, `${method.name} ${answered}`).not.toContain(Number.parseInt(answered, 10));
      }
      expect(await call(Health.method.check)).toBe('0');
    }
    const foreign = { ...(await (await createAuthority('A stranger')).issue()), ca: authority.ca };
    const refused = await open('apps', foreign).call(Health.method.check, CREDENTIAL);
    expect(Number.parseInt(refused, 10)).toBe(status.UNAVAILABLE);
  });

  it('answer only probes over HTTP', async () => {
    const ask = (service: keyof typeof RPC_SERVICES, method: string, path: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const req = request(fleet.process(service).url + path, { method, ...tls, agent: false });
        req
          .on('response', (res) => resolve(res.resume().statusCode))
          .on('error', reject)
          .end();
      });
    for (const service of SERVICES) {
      for (const path of ['/uploads', '/avatars'])
        expect(await ask(service, 'PUT', path), `${service} ${path}`).toBe(service === 'files' ? 401 : 404);
      for (const path of ['/', '/metrics', '/asyncapi.json', '/healthz/x'])
        expect(await ask(service, 'GET', path), `${service} ${path}`).toBe(404);
      expect(await ask(service, 'GET', '/healthz')).toBe(200);
    }
  });

  /** Runs the example as a program with its own certificate. */
  async function runExample(httpKey: string, env: NodeJS.ProcessEnv = {}) {
    const paths = await writeTlsFiles(join(fleet.objectsDir, '..', 'tls', 'example'), tls, tls.ca);
    const settings = {
      LATCHKEY_CREDENTIAL: SERVICE_CREDENTIAL,
      LATCHKEY_APPS: fleet.process('apps').grpc,
      LATCHKEY_FILES: fleet.process('files').grpc,
      LATCHKEY_TLS_CA: paths.SERVICE_TLS_CA_FILE,
      LATCHKEY_TLS_CERT: paths.SERVICE_TLS_CERT_FILE,
      LATCHKEY_TLS_KEY: paths.SERVICE_TLS_KEY_FILE,
    };
    // Node warns of certificates whose names are addresses.
    const args = ['--no-deprecation', fileURLToPath(import.meta.resolve('@latchkey/examples/grpc/download-url.ts')), httpKey];
    return new Promise<{ code: unknown; out: string; err: string }>((resolve) => {
      execFile(process.execPath, args, { env: { ...programEnv(), ...settings, ...env } }, (failure, out, err) =>
        resolve({ code: failure?.code ?? 0, out, err }),
      );
    });
  }
});
