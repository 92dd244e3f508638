import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { createAuthority, type TestAuthority, type TestCertificate, writeTlsFiles } from '@latchkey/testkit/certificates';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { getAvatar, plain, uploadAvatar } from '../testing/avatars.ts';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { outcome, upload } from '../testing/files.ts';
import { type Fleet, startFleet } from '../testing/fleet/fleet.ts';
import { addressOf, CALLERS, type GrpcAddress } from '../testing/grpc/callers.ts';
import { pathOf } from '../testing/grpc/method-path.ts';
import { reflectServices } from '../testing/grpc/reflected.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';

/** What every service has beside its own methods. */
const COMMON = ['grpc.health.v1.Health', 'grpc.reflection.v1.ServerReflection'];

/** How a call without the credential ends. */
const REFUSED = `${status.UNAUTHENTICATED} a service credential is required`;

/** How no call may end, whatever it asks. */
const DEFECTS: readonly number[] = [status.UNKNOWN, status.INTERNAL, status.UNIMPLEMENTED];

/** How a call ends that gets no connection, as libraries see it. */
const LOST: readonly number[] = [status.UNAVAILABLE, status.UNKNOWN, status.INTERNAL, status.ABORTED, status.CANCELLED];

let fleet: Fleet;
let authority: TestAuthority;
let own: TestCertificate & { ca: string };

const SERVICES = ['apps', 'identity', 'files', 'realtime', 'avatar-worker'] as const;
const address = (service: (typeof SERVICES)[number]): GrpcAddress => addressOf(fleet.process(service), own);

/** All methods that a process has by its own account, but those that anyone may call. */
async function closedMethods(service: (typeof SERVICES)[number]): Promise<DescMethodUnary[]> {
  const services = await reflectServices(address(service));
  const methods = services.filter(({ typeName }) => !COMMON.includes(typeName)).flatMap((one) => one.methods);
  expect(methods.every(({ methodKind }) => methodKind === 'unary')).toBe(true);
  return methods as DescMethodUnary[];
}

/** One of each service, with TLS between them, and clients of every kind that has a right to call them. */
describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('services that are called over the network, with TLS', () => {
  beforeAll(async () => {
    authority = await createAuthority();
    own = { ...(await authority.issue()), ca: authority.ca };
    fleet = await startFleet({ count: 1, avatarWorkers: 1, tls: authority });
  });
  afterAll(() => fleet?.stop());

  it('do their work together: calls, uploads, downloads and avatars', async () => {
    const owner = await signUp(fleet.api);
    const { api } = await createKey(owner);
    const applicationId = await createApplication(api);
    expect(outcome(await upload(api, applicationId, 'release', randomBytes(3_000_000)))).toBe('200');
    const image = await plain(64, 64).png().toBuffer();
    expect(outcome(await uploadAvatar(owner.session, image))).toBe('200');
    expect((await getAvatar(owner.session)).headers.get('content-type')).toBe('image/webp');
  });

  it.each(SERVICES)('%s lists each of its services once by reflection', async (service) => {
    const names = (await reflectServices(address(service))).map(({ typeName }) => typeName);
    expect(names).toEqual(expect.arrayContaining(COMMON));
    expect(new Set(names).size).toBe(names.length);
  });

  it('answer about health by every client without a credential', async () => {
    for (const service of SERVICES) {
      for (const caller of CALLERS.filter(({ name }) => !name.includes('proto-loader'))) {
        expect(await caller.call(address(service), Health.method.check), `${service} ${caller.name}`).toBe('0');
        expect(await caller.call(address(service), Health.method.list), `${service} ${caller.name}`).toBe(REFUSED);
      }
    }
  });

  it.each(CALLERS)(
    'refuse every method to $name without the credential, and with a wrong one',
    async ({ call }) => {
      let count = 0;
      for (const service of SERVICES) {
        for (const method of await closedMethods(service)) {
          for (const authorization of [undefined, '', 'Bearer wrong', SERVICE_CREDENTIAL, `Basic ${SERVICE_CREDENTIAL}`]) {
            expect(await call(address(service), method, authorization), `${pathOf(method)} ${authorization}`).toBe(REFUSED);
            count += 1;
          }
        }
      }
      expect(count).toBeGreaterThan(150);
    },
    60_000,
  );

  it('answer every method to every kind of client, and to all alike', async () => {
    const differing: string[] = [];
    for (const service of SERVICES) {
      for (const method of await closedMethods(service)) {
        const outcomes = new Map<string, string>();
        for (const { name, call } of CALLERS)
          outcomes.set(name, await call(address(service), method, `Bearer ${SERVICE_CREDENTIAL}`));
        const all = new Set(outcomes.values());
        const isDefect = [...all].some((one) => one === REFUSED || DEFECTS.includes(Number.parseInt(one, 10)));
        if (all.size !== 1 || isDefect) differing.push(`${pathOf(method)} ${JSON.stringify([...outcomes])}`);
      }
    }
    expect(differing).toEqual([]);
  });

  it('answer nothing else over HTTP but probes: neither bodies without the credential, nor what is not there', async () => {
    const paths = [
      'PUT /uploads',
      'PUT /avatars',
      'POST /uploads',
      'GET /',
      'GET /metrics',
      'GET /asyncapi.json',
      'GET /healthz/x',
    ];
    const answers: Record<string, number> = {};
    for (const service of SERVICES) {
      for (const path of paths) answers[`${service} ${path}`] = await ask(fleet.process(service).url, path);
    }
    const expected = Object.keys(answers).map((what) => [what, /^files PUT/.test(what) ? 401 : 404]);
    expect(answers).toEqual(Object.fromEntries(expected));
    expect(await ask(fleet.process('apps').url, 'GET /healthz')).toBe(200);
  });

  it('do what the example asks of them, and tell it by a reason what they refuse', async () => {
    const { api } = await createKey(await signUp(fleet.api));
    const applicationId = await createApplication(api, 'Example application');
    const { httpKey } = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
    expect(await runExample(httpKey)).toEqual({ code: 0, out: 'Example application has no files.\n', err: '' });
    await upload(api, applicationId, 'release', 'the release');
    const { code, out, err } = await runExample(httpKey);
    const [first, url = ''] = out.split('\n');
    expect({ code, err, first }).toEqual({ code: 0, err: '', first: 'Example application: release' });
    expect(await (await fetch(url)).text()).toBe('the release');
    const unknown = await runExample(`lk_http_${'x'.repeat(32)}`);
    expect(unknown).toEqual({ code: 1, out: '', err: 'There is no application with this key.\n' });
    const refused = await runExample(httpKey, { LATCHKEY_CREDENTIAL: 'wrong' });
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(/^a service credential is required \(request [\da-f-]{36}\)\n$/),
    ]);
  });

  /** Runs the example as a program that has a certificate of its own. */
  async function runExample(httpKey: string, env: NodeJS.ProcessEnv = {}) {
    const paths = await writeTlsFiles(join(fleet.objectsDir, '..', 'tls', 'example'), own, own.ca);
    const { promise, resolve } = Promise.withResolvers<{ code: unknown; out: string; err: string }>();
    const settings = {
      LATCHKEY_CREDENTIAL: SERVICE_CREDENTIAL,
      LATCHKEY_APPS: fleet.process('apps').grpc,
      LATCHKEY_FILES: fleet.process('files').grpc,
      LATCHKEY_TLS_CA: paths.SERVICE_TLS_CA_FILE,
      LATCHKEY_TLS_CERT: paths.SERVICE_TLS_CERT_FILE,
      LATCHKEY_TLS_KEY: paths.SERVICE_TLS_KEY_FILE,
    };
    const example = fileURLToPath(import.meta.resolve('@latchkey/examples/grpc/download-url.ts'));
    // What Node warns of, names given as addresses, is not the example's.
    const args = ['--no-deprecation', example, httpKey];
    execFile(process.execPath, args, { env: { ...settings, ...env } }, (err, out, errText) =>
      resolve({ code: err ? err.code : 0, out, err: errText }),
    );
    return promise;
  }

  it('let nobody in who has no certificate, whatever credential is shown', async () => {
    const { grpc, url } = address('apps');
    const stranger = await createAuthority('A stranger');
    const foreign = addressOf({ grpc, url }, { ...(await stranger.issue()), ca: authority.ca });
    const [method] = await closedMethods('apps');
    for (const { name, call } of CALLERS) {
      const code = await call(foreign, method as DescMethodUnary, `Bearer ${SERVICE_CREDENTIAL}`);
      expect(LOST, `${name}: ${code}`).toContain(Number.parseInt(code, 10));
    }
  });
});

function ask(url: string, what: string): Promise<number> {
  const [method, path] = what.split(' ') as [string, string];
  return new Promise((resolve, reject) => {
    const req = request(url + path, { method, ...own, agent: false }, (res) => {
      res.resume();
      resolve(res.statusCode ?? 0);
    });
    req.on('error', reject).end();
  });
}
