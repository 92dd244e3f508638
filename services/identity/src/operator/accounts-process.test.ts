import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';
import { describe, expect, test, vi } from 'vitest';
import { openTestIdentity } from '../testing/identity.ts';
import { someSignUp } from '../testing/sample.ts';
import { explain, parseAccountsCall } from './accounts-process.ts';
import { readNewPassword } from './password-prompt.ts';

// Some tests start processes, one after the other.
vi.setConfig({ testTimeout: 60_000 });

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
const PASSWORD = 'correct horse battery';

const identity = await openTestIdentity();
// Log lines would mix with the output.
const settings = { ...identity.env, SIGN_UP: 'closed', LOG_LEVEL: 'trace' };

/** Runs `main.ts accounts`; standard input stays open. */
async function run(args: readonly string[], { env = settings, input }: { env?: Record<string, string>; input?: string } = {}) {
  const child = spawn(process.execPath, [MAIN, 'accounts', ...args], { env: { ...programEnv(), ...env } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk) => (output[name] += chunk));
  child.stdin.on('error', () => undefined);
  if (input !== undefined) child.stdin.write(input);
  const [code] = await once(child, 'close');
  return { code, ...output };
}

test('an account is created where sign-up is closed, with text or JSON as output', async () => {
  const { username, email } = someSignUp();
  const created = await run(['create', '--username', username, '--email', email], { input: `${PASSWORD}\n` });
  expect(created).toEqual({ code: 0, stdout: expect.stringMatching(/^Created the account [^\n]+\.\n$/), stderr: '' });
  const { stdout, stderr } = await run(['reset-password', email, '--json', '--generate']);
  expect(JSON.parse(stdout)).toMatchObject({ account: { username }, password: expect.any(String) });
  expect(stderr).toBe('');
});

test('an error is a sentence and exit code 1, and JSON on request', async () => {
  const message = 'There is no account "nobody".';
  const { code, stdout, stderr } = await run(['sign-out', 'nobody', '--json']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: `${message}\n` });
  expect(JSON.parse(stdout)).toEqual({ error: { reason: 'account_not_found', message } });
});

test.each([
  [[], 'A command is needed.'],
  [['constructor'], 'There is no such command.'],
  [['create', '--username', 'ada'], 'create needs --username and --email.'],
  [['create', '--username', 'ada', '--email', 'a@b.test', PASSWORD], 'Usage: create '],
  [['create', '--username', 'ada', '--email', 'a@b.test', `--password=${PASSWORD}`], "Unknown option '--password'."],
  [['reset-password'], 'Usage: reset-password ACCOUNT'],
  [['reset-password', '-ada'], "Unknown option '-a'."],
  [['list', '--limit', '0'], '--limit must be a whole number from 1 to 1000.'],
  [['list', '--limit=-1'], '--limit must be a whole number from 1 to 1000.'],
  [['list', '--after', 'ada'], '--after must be the id of an account.'],
] as const)('%j is wrong usage', (args, message) => {
  expect(() => parseAccountsCall(args)).toThrow(message);
  expect(() => parseAccountsCall(args)).not.toThrow(PASSWORD);
});

test('wrong usage has exit code 2, help 0', async () => {
  const { code, stderr } = await run(['remove'], { env: {} });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^There is no such command\.\nSee .+ --help\n$/) });
  expect(await run(['list', '-h'], { env: {} })).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: /) });
});

test('wrong settings, a missing database and missing tables are errors without secrets', async () => {
  const wrong = await run(['list'], { env: { DATABASE_URL: 'mysql://root:hunter2@localhost', SECRET_KEY: 'short' } });
  expect(wrong.stderr).toMatch(
    /^Wrong settings:\n {2}DATABASE_URL must .+\n {2}REDIS_URL is required\n {2}SECRET_KEY must .+\n$/,
  );
  const away = await run(['list'], { env: { ...settings, DATABASE_URL: 'postgres://latchkey:hunter2@127.0.0.1:1/none' } });
  expect(away.stderr).toMatch(/^The command failed: .+\.\n$/);
  const empty = await createEmptyTestDatabase();
  const outdated = await run(['list'], { env: { ...settings, DATABASE_URL: empty.url } });
  await empty.drop();
  expect(outdated.stderr).toMatch(/^The tables of the identity service are missing/);
  for (const { code, stderr } of [wrong, away, outdated]) {
    expect(code).toBe(1);
    expect(stderr).not.toContain('hunter2');
  }
});

describe('a password prompt', () => {
  /** A terminal at which somebody types when asked. */
  function startTyping() {
    const raw: boolean[] = [];
    const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (on: boolean) => void raw.push(on) });
    let shown = '';
    const outcome = readNewPassword(input, { write: (text) => (shown += text) }).catch((err: unknown) => explain(err).reason);
    const answer = async (text: string) => {
      const asked = shown.length;
      input.write(text);
      await eventually(() => shown.length > asked);
    };
    return { input, outcome, answer, raw, shown: () => shown };
  }

  test('asks twice without echo, and restores the terminal', async () => {
    const terminal = startTyping();
    await terminal.answer(`wrong\u0015${PASSWORD}x\u007f\r`);
    await terminal.answer(`${PASSWORD}\r`);
    expect(await terminal.outcome).toBe(PASSWORD);
    expect(terminal.shown()).toBe('New password: \nThe same again: \n');
    expect(terminal.raw).toEqual([true, false]);
  });

  test('rejects two different passwords, and the end of input', async () => {
    const different = startTyping();
    await different.answer(`${PASSWORD}\r`);
    await different.answer(`${PASSWORD} \r`);
    expect(await different.outcome).toBe('passwords_differ');
    const ended = startTyping();
    await ended.answer('\u0004');
    expect(await ended.outcome).toBe('password_missing');
  });

  test('lets Ctrl-C interrupt the process', async () => {
    const interrupted = once(process, 'SIGINT');
    startTyping().input.write('\u0003');
    await interrupted;
  });
});
