import { spawnSync } from 'node:child_process';
import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readAvatarWorkerConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityProcessConfig } from '@latchkey/identity/config';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, it } from 'vitest';
import { ROOT } from './program.ts';

const CREDENTIAL = 'a-credential-of-the-tests-of-settings';
const common = { SERVICE_CREDENTIALS: CREDENTIAL, REDIS_URL: 'redis://r' };
const stored = { ...common, DATABASE_URL: 'postgres://d/b', SECRET_KEY: 'a-secret-key-of-the-tests-of-settings' };
const [APPS_URL, IDENTITY_URL, FILES_URL] = ['http://apps', 'http://identity', 'http://files'];
const gateway = { ...common, APPS_URL, IDENTITY_URL, FILES_URL };
const avatarWorker = { ...common, DATABASE_URL: stored.DATABASE_URL, IDENTITY_URL, OBJECTS_DIR: '/tmp' };

/** Runs a service with these settings and no others. */
function run(name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const command = [`services/${name}/src/main.ts`, ...args];
  const options = { cwd: ROOT, env: { ...programEnv(), ...env }, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, command, options);
  return { status, stdout, stderr };
}
const namesIn = (problems: readonly string[]) => problems.map((problem) => problem.trim().split(' ')[0]).toSorted();

it.each<[string, (env: NodeJS.ProcessEnv) => unknown, NodeJS.ProcessEnv]>([
  ['apps', readAppsProcessConfig, stored],
  ['identity', readIdentityProcessConfig, { ...stored, APPS_URL }],
  ['files', readFilesProcessConfig, { ...stored, APPS_URL, IDENTITY_URL, OBJECTS_DIR: '/tmp' }],
  ['the avatar worker', readAvatarWorkerConfig, avatarWorker],
  ['realtime', readRealtimeProcessConfig, { ...common, APPS_URL }],
  ['gateway', readGatewayProcessConfig, gateway],
])('%s accepts exactly its required settings, names each missing or wrong one, and repeats no value', (_name, read, required) => {
  const problemsOf = (env: NodeJS.ProcessEnv) => {
    try {
      read(env);
      return [];
    } catch (err) {
      return (err as Error).message.split('\n');
    }
  };
  const names = Object.keys(required).toSorted();
  expect(problemsOf(required)).toEqual([]);
  expect(namesIn(problemsOf({}))).toEqual(names);
  expect(namesIn(problemsOf(Object.fromEntries(names.map((name) => [name, '']))))).toEqual(names);
  const wrong = problemsOf(Object.fromEntries(names.map((name) => [name, 'swordfish'])));
  // A folder may have any name.
  expect(namesIn(wrong)).toEqual(names.filter((name) => name !== 'OBJECTS_DIR'));
  expect(wrong.join()).not.toContain('swordfish');
});

it.each([
  ['gateway', [], gateway],
  ['files', ['avatar-worker'], avatarWorker],
])('the process %s ends without settings, and names all that it needs', { timeout: 60_000 }, (name, args, required) => {
  const { status, stdout, stderr } = run(name, args, { METRICS_PORT: '9464', SERVICE_TLS_CERT_FILE: '/nowhere' });
  const [first, ...problems] = stderr.trimEnd().split('\n');
  expect({ status, stdout, first }).toEqual({ status: 1, stdout: '', first: 'Wrong settings:' });
  const beside = ['METRICS_TOKEN', 'SERVICE_TLS_CA_FILE', 'SERVICE_TLS_KEY_FILE'];
  expect(namesIn(problems)).toEqual([...Object.keys(required), ...beside].toSorted());
});

it('a process ends where Redis rejects it, and says so without the password', { timeout: 60_000 }, async () => {
  const url = Object.assign(new URL((await testRedis()).url), { username: 'stranger', password: 'swordfish' });
  const ports = { HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', REALTIME_PORT: '0' };
  const { status, stdout } = run('realtime', [], { ...common, APPS_URL, ...ports, REDIS_URL: url.href });
  expect(status).toBe(1);
  expect(stdout).toContain(`redis rejects the user or the password of REDIS_URL, at ${url.host}: WRONGPASS`);
  expect(stdout).not.toContain('swordfish');
});

it('a migration needs its database, and no secret of the service', { timeout: 60_000 }, () => {
  const result = run('identity', ['migrate'], { REDIS_URL: 'swordfish', METRICS_PORT: 'swordfish' });
  expect(result).toEqual({ status: 1, stdout: '', stderr: 'Wrong settings:\n  DATABASE_URL is required\n' });
});

it('a service lists its commands, and does not start with wrong arguments', { timeout: 60_000 }, () => {
  const { status, stdout, stderr } = run('files', ['--help']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.split('\n').flatMap((line) => /^ {2}([a-z-]+) {2}/.exec(line)?.[1] ?? [])).toEqual(['avatar-worker', 'migrate']);
  expect(run('files', ['migrat'])).toMatchObject({ status: 2, stderr: expect.stringMatching(/^Unknown command migrat\. /) });
});
