import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { createAuthority, type TestAuthority, writeTlsFiles } from '@latchkey/testkit/certificates';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { getAvatar, plain, uploadAvatar } from '../testing/avatars.ts';
import { createApplication, createKey, signUp } from '../testing/caller.ts';
import { outcome, upload } from '../testing/files.ts';
import { type Fleet, startFleet } from '../testing/fleet/fleet.ts';
import { addressOf, CALLERS, type GrpcAddress, reflectServices } from '../testing/grpc.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';

const CREDENTIAL = `Bearer ${SERVICE_CREDENTIAL}`;
const REFUSED = `${status.UNAUTHENTICATED} a service credential is required`;
/** How no call may end, whatever its request. */
const DEFECTS: readonly number[] = [status.UNKNOWN, status.INTERNAL, status.UNIMPLEMENTED];
/** How a call without a connection ends, by library. */
const LOST: readonly number[] = [status.UNAVAILABLE, status.UNKNOWN, status.INTERNAL, status.ABORTED, status.CANCELLED];
const SERVICES = ['apps', 'identity', 'files', 'realtime', 'avatar-worker'] as const;

let fleet: Fleet;
let authority: TestAuthority;
let own: GrpcAddress['tls'];
const address = (service: (typeof SERVICES)[number]): GrpcAddress => addressOf(fleet.process(service), own);

/** Every method of our services in a process, and Health/Check. */
async function methodsOf(service: (typeof SERVICES)[number]) {
  const services = await reflectServices(address(service), CREDENTIAL);
  const names = services.map(({ typeName }) => typeName);
  expect(new Set(names).size).toBe(names.length);
  const all = services.flatMap(({ methods }) => methods) as DescMethodUnary[];
  const check = all.find(({ parent, name }) => `${parent.typeName}/${name}` === 'grpc.health.v1.Health/Check');
  return { check: check as DescMethodUnary, closed: all.filter(({ parent }) => parent.typeName.startsWith('latchkey.')) };
}

/** One of each service with TLS, and clients of every protocol with a certificate (S6). */
describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('services over the network, with TLS', () => {
  beforeAll(async () => {
    authority = await createAuthority();
    own = { ...(await authority.issue()), ca: authority.ca };
    fleet = await startFleet({ count: 1, avatarWorkers: 1, tls: authority });
  });
  afterAll(() => fleet?.stop());

  it('do their work together: calls, uploads and avatars', async () => {
    const owner = await signUp(fleet.api);
    const { api } = await createKey(owner);
    const applicationId = await createApplication(api);
    expect(outcome(await upload(api, applicationId, 'release', randomBytes(3_000_000)))).toBe('200');
    expect(outcome(await uploadAvatar(owner.session, await plain(64, 64).png().toBuffer()))).toBe('200');
    expect((await getAvatar(owner.session)).headers.get('content-type')).toBe('image/webp');
  });

  it('answer Health/Check without the credential, refuse every method of ours, and answer it with the credential, to every client alike', async () => {
    const wrong: string[] = [];
    let count = 0;
    for (const service of SERVICES) {
      const { check, closed } = await methodsOf(service);
      for (const { name, call } of CALLERS) expect(await call(address(service), check), `${service} ${name}`).toBe('0');
      for (const method of closed) {
        count += 1;
        const outcomes = new Set<string>();
        for (const { name, call } of CALLERS) {
          for (const authorization of [undefined, 'Bearer wrong']) {
            const refused = await call(address(service), method, authorization);
            if (refused !== REFUSED) wrong.push(`${name} ${method.name} ${refused}`);
          }
          outcomes.add(await call(address(service), method, CREDENTIAL));
        }
        const isDefect = [...outcomes].some((one) => one === REFUSED || DEFECTS.includes(Number.parseInt(one, 10)));
        if (outcomes.size !== 1 || isDefect) wrong.push(`${method.name} ${[...outcomes]}`);
      }
    }
    expect([wrong, count > 30]).toEqual([[], true]);
  }, 120_000);

  it('answer nothing else over HTTP but probes', async () => {
    for (const service of SERVICES) {
      for (const path of 'PUT /uploads|PUT /avatars|POST /uploads|GET /|GET /metrics|GET /asyncapi.json|GET /healthz/x'.split(
        '|',
      ))
        expect(await ask(service, path), `${service} ${path}`).toBe(service === 'files' && path.startsWith('PUT') ? 401 : 404);
    }
    expect(await ask('apps', 'GET /healthz')).toBe(200);
  });

  function ask(service: (typeof SERVICES)[number], what: string): Promise<number | undefined> {
    const [method = '', path = ''] = what.split(' ');
    return new Promise((resolve, reject) => {
      const req = request(fleet.process(service).url + path, { method, ...own, agent: false }, (res) =>
        resolve(res.resume().statusCode),
      );
      req.on('error', reject).end();
    });
  }

  it('refuse a client without a certificate of the authority, whatever credential it shows', async () => {
    const stranger = await createAuthority('A stranger');
    const foreign = addressOf(fleet.process('apps'), { ...(await stranger.issue()), ca: authority.ca });
    const { check } = await methodsOf('apps');
    for (const { name, call } of CALLERS) {
      const code = await call(foreign, check, CREDENTIAL);
      expect(LOST, `${name}: ${code}`).toContain(Number.parseInt(code, 10));
    }
  });

  it('serve the example of docs, which reports by a reason what they refuse', async () => {
    const { api } = await createKey(await signUp(fleet.api));
    const applicationId = await createApplication(api, 'Example application');
    const { httpKey } = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
    expect(await runExample(httpKey)).toEqual({ code: 0, out: 'Example application has no files.\n', err: '' });
    await upload(api, applicationId, 'release', 'the release');
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

  /** Runs the example as a program with its own certificate. */
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
    // Node warns of certificates whose names are addresses.
    const args = ['--no-deprecation', example, httpKey];
    const done = (err: Error | null, out: string, errText: string) =>
      resolve({ code: err ? (err as { code?: unknown }).code : 0, out, err: errText });
    execFile(process.execPath, args, { env: { ...settings, ...env } }, done);
    return promise;
  }
});
