import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openTestIdentity } from '../testing/identity.ts';
import { runCommand } from '../testing/operator.ts';
import { someSignUp } from '../testing/sample.ts';
import { explain, parseAccountsCall } from './accounts-process.ts';
import { readNewPassword } from './password-prompt.ts';

const LATCHKEY = fileURLToPath(new URL('../../../../deploy/bin/latchkey.ts', import.meta.url));
const PASSWORD = 'correct horse battery';

const identity = await openTestIdentity();
// Log lines would mix with the output.
const settings = { ...identity.env, SIGN_UP: 'closed', LOG_LEVEL: 'trace' };

/** Runs `latchkey admin accounts` as in the image; standard input stays open. */
async function run(args: readonly string[], input = '') {
  const child = spawn(process.execPath, [LATCHKEY, 'admin', 'accounts', ...args], { env: { ...programEnv(), ...settings } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk) => (output[name] += chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.write(input);
  const [code] = await once(child, 'close');
  return { code, ...output };
}

test('a process ends with the result on stdout and code 0, or a sentence on stderr and another code', async () => {
  const { username, email } = someSignUp();
  const message = 'There is no account "ada".';
  const [created, failed, misused] = await Promise.all([
    run(['create', '--username', username, '--email', email], `${PASSWORD}\n`),
    run(['sign-out', 'ada', '--json']),
    run(['remove']),
  ]);
  expect(created).toEqual({ code: 0, stdout: expect.stringMatching(/^Created the account [^\n]+\.\n$/), stderr: '' });
  expect(failed).toEqual({ code: 1, stdout: expect.stringMatching(/^.+\n$/), stderr: `${message}\n` });
  expect(JSON.parse(failed.stdout)).toEqual({ error: { reason: 'account_not_found', message } });
  const usage = 'There is no such command.\nSee latchkey admin accounts --help\n';
  expect(misused).toEqual({ code: 2, stdout: '', stderr: usage });
}, 60_000);

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

test('help is shown for a program and for a command', () => {
  for (const args of [['help'], ['--help'], ['list', '-h']]) expect(parseAccountsCall(args)).toBe('help');
});

test('wrong settings, a missing database and missing tables are errors without secrets', async () => {
  const wrong = { env: { DATABASE_URL: 'mysql://root:hunter2@localhost', REDIS_URL: '', SECRET_KEY: 'short' } };
  const problems = /^Wrong settings:\n {2}DATABASE_URL must .+\n {2}REDIS_URL is required\n {2}SECRET_KEY must .+$/;
  const empty = await createEmptyTestDatabase();
  onTestFinished(() => empty.drop());
  const results = [
    await runCommand(identity, ['list'], wrong),
    await runCommand(identity, ['list'], { env: { DATABASE_URL: 'postgres://latchkey:hunter2@127.0.0.1:1/none' } }),
    await runCommand(identity, ['list'], { env: { DATABASE_URL: empty.url } }),
  ];
  expect(results.map(({ reason }) => reason)).toEqual(['settings_wrong', 'failed', 'schema_missing']);
  expect(results[0].message).toMatch(problems);
  expect(JSON.stringify(results)).not.toContain('hunter2');
});

describe('a password prompt', () => {
  /** A terminal at which a user types when asked. */
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
