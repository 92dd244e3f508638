import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { programEnv } from '@latchkey/testkit/program-env';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { migrateIdentity } from '../testing/identity.fixture.ts';
import { someSignUp } from '../testing/sample.fixture.ts';

// Each test starts processes, one after the other.
vi.setConfig({ testTimeout: 60_000 });

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
const PASSWORD = 'a password of nobody else';

let database: TestDatabase;
let settings: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  settings = {
    DATABASE_URL: database.url,
    REDIS_URL: (await testRedis()).url,
    SECRET_KEY: 'test-secret-key-of-32-characters!',
    SIGN_UP: 'closed',
    // What is logged would stand between what a script reads.
    LOG_LEVEL: 'trace',
  };
});
afterAll(() => database.drop());

/** Runs `main.ts accounts` with the settings; standard input stays open unless the text that comes there is given. */
async function run(args: readonly string[], { env = settings, input }: { env?: Record<string, string>; input?: string } = {}) {
  const child = spawn(process.execPath, [MAIN, 'accounts', ...args], { env: { ...programEnv(), ...env } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk) => (output[name] += chunk));
  // A command that needs no password may have ended before.
  child.stdin.on('error', () => undefined);
  if (input !== undefined) child.stdin.write(input);
  const [code] = await once(child, 'close');
  return { code, ...output };
}

const createArguments = () => {
  const { username, email } = someSignUp();
  return ['create', '--username', username, '--email', email];
};

test('a deployment without sign-up gets an account, in a sentence or in JSON, from a pipe that stays open', async () => {
  const said = await run(createArguments(), { input: `${PASSWORD}\n` });
  expect(said).toEqual({ code: 0, stdout: expect.stringMatching(/^Made the account [^\n]+\.\n$/), stderr: '' });
  const told = await run([...createArguments(), '--json', '--generate']);
  expect(told).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(told.stdout)).toEqual({ account: expect.any(Object), password: expect.any(String) });
});

test('a refusal is a sentence and code 1, and JSON as well where it was asked for', async () => {
  expect(await run(['sign-out', 'nobody'])).toEqual({ code: 1, stdout: '', stderr: 'There is no account "nobody".\n' });
  const { code, stdout } = await run(['sign-out', 'nobody', '--json']);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({ error: { reason: 'account_not_found', message: 'There is no account "nobody".' } });
});

test.each([
  [[], 'A command is needed.'],
  [['remove'], 'There is no such command.'],
  [['constructor'], 'There is no such command.'],
  [['create', '--username', 'ada'], 'create needs --email.'],
  [['create', '--username', 'ada', '--email'], "Option '--email <value>' argument missing."],
  [['create', '--username', 'ada', '--email', 'a@b.test', PASSWORD], 'create takes options only.'],
  [['create', '--username', 'ada', '--email', 'a@b.test', `--password=${PASSWORD}`], "Unknown option '--password'."],
  [['reset-password'], 'reset-password takes ACCOUNT.'],
  [['reset-password', 'ada', PASSWORD], 'reset-password takes ACCOUNT.'],
  [['reset-password', '-ada'], "Unknown option '-a'.\nSee"],
  [['create', '--username', '-ada', '--email', 'a@b.test'], "Option '--username' argument is ambiguous.\nSee"],
  [['reset-password', 'ada', '--generate=yes'], "Option '--generate' does not take an argument."],
  [['list', 'ada'], 'list takes options only.'],
  [['list', '--limit', 'all'], '--limit must be a whole number from 1 to 1000.'],
  [['revoke-key', 'ada'], 'revoke-key takes ACCOUNT and KEY.'],
  [['revoke-key', 'ada', `lk_mgmt_${'a'.repeat(16)}_${'b'.repeat(48)}`], 'Name a key by its public id and not by its text'],
  [['revoke-key', 'ada', `lk_http_${'a'.repeat(32)}`], 'Name a key by its public id and not by its text'],
] as const)('%j is wrong usage, which is said without repeating what may be secret', async (args, sentence) => {
  const { code, stdout, stderr } = await run(args, { env: {} });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(sentence);
  expect(stderr).toMatch(/^[^\n]+\.\nSee node services\/identity\/src\/main\.ts accounts --help\n$/);
  expect(stderr).not.toContain(PASSWORD);
  expect(stderr).not.toMatch(/a{16}/);
});

test('help is asked for in any place', async () => {
  for (const args of [['--help'], ['help'], ['list', '-h'], ['create', '--help']]) {
    const { code, stdout } = await run(args, { env: {} });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^Usage: /) });
    for (const example of ['--username=-ada', 'reset-password --generate -- -ada']) expect(stdout).toContain(example);
  }
});

test('wrong settings are all told, without their values', async () => {
  const { code, stderr } = await run(['list'], { env: { DATABASE_URL: 'mysql://root:hunter2@localhost', SECRET_KEY: 'short' } });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^Wrong settings:\n {2}DATABASE_URL must .+\n {2}REDIS_URL is required\n {2}SECRET_KEY must .+\n$/);
  expect(stderr).not.toContain('hunter2');
});

test('a database that is away or empty is told in a sentence without its password', async () => {
  const away = await run(['list'], { env: { ...settings, DATABASE_URL: 'postgres://latchkey:hunter2@127.0.0.1:1/none' } });
  expect(away).toMatchObject({ code: 1, stderr: expect.stringMatching(/^It could not be done: .+\.\n$/) });
  expect(away.stderr).not.toContain('hunter2');
  const empty = await createEmptyTestDatabase();
  const { code, stderr } = await run(['list'], { env: { ...settings, DATABASE_URL: empty.url } });
  await empty.drop();
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^The database lacks tables .+\.\n$/) });
});

test('another word is no command of the service', async () => {
  const child = spawn(process.execPath, [MAIN, 'acounts'], { env: settings });
  expect(await once(child, 'close')).toEqual([2, null]);
});
