import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readAvatarWorkerConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityProcessConfig } from '@latchkey/identity/config';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { programEnv } from '@latchkey/testkit/program-env';
import { testRedis } from '@latchkey/testkit/redis';
import { describe, expect, it, onTestFinished } from 'vitest';

const CREDENTIAL = 'a-credential-of-the-tests-of-settings';
const common = { SERVICE_CREDENTIALS: CREDENTIAL, REDIS_URL: 'redis://r' };
const stored = { ...common, DATABASE_URL: 'postgres://d/b', SECRET_KEY: 'a-secret-key-of-the-tests-of-settings' };
const [APPS_URL, IDENTITY_URL, FILES_URL] = ['http://apps', 'http://identity', 'http://files'];

/** Each process, with exactly the settings that it requires. */
const PROCESSES: ReadonlyArray<{
  readonly name: string;
  readonly read: (env: NodeJS.ProcessEnv) => unknown;
  readonly required: NodeJS.ProcessEnv;
  readonly args?: string[];
}> = [
  { name: 'apps', read: readAppsProcessConfig, required: stored },
  { name: 'identity', read: readIdentityProcessConfig, required: { ...stored, APPS_URL } },
  { name: 'files', read: readFilesProcessConfig, required: { ...stored, APPS_URL, IDENTITY_URL, OBJECTS_DIR: '/tmp' } },
  {
    name: 'files',
    args: ['avatar-worker'],
    read: readAvatarWorkerConfig,
    required: { ...common, DATABASE_URL: stored.DATABASE_URL, IDENTITY_URL, OBJECTS_DIR: '/tmp' },
  },
  { name: 'realtime', read: readRealtimeProcessConfig, required: { ...common, APPS_URL } },
  { name: 'gateway', read: readGatewayProcessConfig, required: { ...common, APPS_URL, IDENTITY_URL, FILES_URL } },
];

function problemsOf(read: (env: NodeJS.ProcessEnv) => unknown, env: NodeJS.ProcessEnv): string[] {
  try {
    read(env);
  } catch (err) {
    return (err as Error).message.split('\n');
  }
  return [];
}

const namesIn = (problems: readonly string[]) => problems.map((problem) => problem.trim().split(' ')[0]).toSorted();

async function run(name: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const main = fileURLToPath(new URL(`../../../services/${name}/src/main.ts`, import.meta.url));
  const child = spawn(process.execPath, [main, ...args], { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close');
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: (await closed)[0], out, err };
}

const PORTS = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', REALTIME_PORT: '0' };

describe.each(PROCESSES)('$name $args', ({ name, args = [], read, required }) => {
  it('ends without settings, and names every one that it needs, and the rest of those that belong together', async () => {
    const half = { METRICS_PORT: '9464', SERVICE_TLS_CERT_FILE: '/nowhere' };
    const { code, out, err } = await run(name, args, half);
    const [first, ...problems] = err.trimEnd().split('\n');
    expect({ code, out, first }).toEqual({ code: 1, out: '', first: 'Wrong settings:' });
    const beside = ['METRICS_TOKEN', 'SERVICE_TLS_CA_FILE', 'SERVICE_TLS_KEY_FILE'];
    expect(namesIn(problems)).toEqual([...Object.keys(required), ...beside].toSorted());
  }, 30_000);

  it('accepts exactly these, names each missing or wrong one, and repeats no value', () => {
    expect(problemsOf(read, required)).toEqual([]);
    for (const missing of Object.keys(required)) {
      for (const value of [undefined, '']) {
        expect(namesIn(problemsOf(read, { ...required, [missing]: value })), missing).toEqual([missing]);
      }
    }
    const names = Object.keys(required);
    const problems = problemsOf(read, Object.fromEntries(names.map((setting) => [setting, 'swordfish'])));
    // A folder may have any name.
    expect(namesIn(problems)).toEqual(names.filter((setting) => setting !== 'OBJECTS_DIR').toSorted());
    expect(problems.join()).not.toContain('swordfish');
  });
});

it('a process ends where PostgreSQL rejects it, also where others migrate', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  const url = Object.assign(new URL(database.url), { password: 'swordfish' });
  const { code, out } = await run('apps', [], { ...stored, ...PORTS, MIGRATE_ON_START: 'false', DATABASE_URL: url.href });
  expect([code, out]).toEqual([1, expect.stringContaining('28P01')]);
  expect(out).not.toContain('swordfish');
}, 30_000);

it('a process ends where Redis rejects it, and says so without the password', async () => {
  const url = Object.assign(new URL((await testRedis()).url), { username: 'nobody', password: 'swordfish' });
  const { code, out } = await run('realtime', [], { ...common, APPS_URL, ...PORTS, REDIS_URL: url.href });
  expect(code).toBe(1);
  expect(out).toContain(`redis refuses the user or the password of REDIS_URL, at ${url.host}: WRONGPASS`);
  expect(out).not.toContain('swordfish');
}, 30_000);

it('a migration needs its database, and no secret of the service', async () => {
  const { code, out, err } = await run('identity', ['migrate'], { REDIS_URL: 'swordfish', METRICS_PORT: 'swordfish' });
  expect({ code, out, err }).toEqual({ code: 1, out: '', err: 'Wrong settings:\n  DATABASE_URL is required\n' });
}, 30_000);
