import { spawn } from 'node:child_process';
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

/** Each process that there is, with the settings that it can't do without: these and no others. */
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

/** What is wrong by the account of what reads settings. */
function problemsOf(read: (env: NodeJS.ProcessEnv) => unknown, env: NodeJS.ProcessEnv): string[] {
  try {
    read(env);
  } catch (err) {
    return (err as Error).message.split('\n');
  }
  return [];
}

const namesIn = (problems: readonly string[]) => problems.map((problem) => problem.trim().split(' ')[0]).toSorted();

function run(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; out: string; err: string }> {
  const main = fileURLToPath(new URL(`../../../services/${name}/src/main.ts`, import.meta.url));
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...programEnv(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    err += text;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, out, err })));
}

const PORTS = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', REALTIME_PORT: '0' };

describe.each(PROCESSES)('$name $args', ({ name, args = [], read, required }) => {
  it('ends at once without settings, and names every one that it needs, those for metrics and TLS that belong together too', async () => {
    const half = { METRICS_PORT: '9464', SERVICE_TLS_CERT_FILE: '/nowhere' };
    const { code, out, err } = await run(name, args, half);
    const [first, ...problems] = err.trimEnd().split('\n');
    expect({ code, out, first }).toEqual({ code: 1, out: '', first: 'Wrong settings:' });
    const beside = ['METRICS_TOKEN', 'SERVICE_TLS_CA_FILE', 'SERVICE_TLS_KEY_FILE'];
    expect(namesIn(problems)).toEqual([...Object.keys(required), ...beside].toSorted());
  }, 30_000);

  it('starts with them, and is refused without any single one', () => {
    expect(problemsOf(read, required)).toEqual([]);
    for (const missing of Object.keys(required)) {
      for (const env of [
        { ...required, [missing]: undefined },
        { ...required, [missing]: '' },
      ]) {
        expect(namesIn(problemsOf(read, env)), missing).toEqual([missing]);
      }
    }
  });

  it('is refused with each wrong one, all of them named at once and no value repeated', () => {
    const wrong = Object.fromEntries(Object.keys(required).map((setting) => [setting, 'swordfish']));
    const problems = problemsOf(read, wrong);
    // A folder may have any name.
    expect(namesIn(problems)).toEqual(
      Object.keys(required)
        .filter((setting) => setting !== 'OBJECTS_DIR')
        .toSorted(),
    );
    expect(problems.join()).not.toContain('swordfish');
  });

  it.runIf('DATABASE_URL' in required)(
    'ends at once where PostgreSQL refuses it, also where others migrate',
    async () => {
      const database = await createEmptyTestDatabase();
      onTestFinished(() => database.drop());
      const url = Object.assign(new URL(database.url), { password: 'swordfish' });
      const own = { MIGRATE_ON_START: 'false', DATABASE_URL: url.href };
      const { code, out } = await run(name, args, { ...required, ...PORTS, ...own });
      expect(code).toBe(1);
      expect(out).toContain('28P01');
      expect(out).not.toContain('swordfish');
    },
    30_000,
  );

  it('ends at once where Redis refuses it, and says so without the password', async () => {
    const url = Object.assign(new URL((await testRedis()).url), { username: 'nobody', password: 'swordfish' });
    const { code, out } = await run(name, args, { ...required, ...PORTS, REDIS_URL: url.href });
    expect(code).toBe(1);
    expect(out).toContain(`redis refuses the user or the password of REDIS_URL, at ${url.host}: WRONGPASS`);
    expect(out).not.toContain('swordfish');
  }, 30_000);
});

it.each(['apps', 'identity', 'files'])(
  'the migrations of %s need their database, and no secret of the service',
  async (name) => {
    const { code, out, err } = await run(name, ['migrate'], { REDIS_URL: 'swordfish', METRICS_PORT: 'swordfish' });
    expect({ code, out, err }).toEqual({ code: 1, out: '', err: 'Wrong settings:\n  DATABASE_URL is required\n' });
  },
  30_000,
);
