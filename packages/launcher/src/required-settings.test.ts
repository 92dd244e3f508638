import { spawnSync } from 'node:child_process';
import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readAvatarWorkerConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityProcessConfig } from '@latchkey/identity/config';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { expect, it } from 'vitest';
import { ROOT } from './program.ts';

const CREDENTIAL = 'a-credential-of-the-tests-of-settings';
const common = { SERVICE_CREDENTIALS: CREDENTIAL, REDIS_URL: 'redis://r' };
const stored = { ...common, DATABASE_URL: 'postgres://d/b', SECRET_KEY: 'a-secret-key-of-the-tests-of-settings' };
const [APPS_URL, IDENTITY_URL, FILES_URL] = ['http://apps', 'http://identity', 'http://files'];
const gateway = { ...common, APPS_URL, IDENTITY_URL, FILES_URL };
const avatarWorker = { ...common, DATABASE_URL: stored.DATABASE_URL, IDENTITY_URL, OBJECTS_DIR: '/tmp' };

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

it('a service lists its commands, and does not start with wrong arguments', { timeout: 60_000 }, () => {
  const run = (argument: string) =>
    spawnSync(process.execPath, ['services/files/src/main.ts', argument], { cwd: ROOT, env: programEnv(), encoding: 'utf8' });
  const { status, stdout, stderr } = run('--help');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.split('\n').flatMap((line) => /^ {2}([a-z-]+) {2}/.exec(line)?.[1] ?? [])).toEqual(['avatar-worker', 'migrate']);
  expect(run('migrat')).toMatchObject({ status: 2, stderr: expect.stringMatching(/^Unknown command migrat\. /) });
});
