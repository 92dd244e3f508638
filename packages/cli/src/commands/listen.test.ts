import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import {
  eventText,
  readyText,
  type ScriptedLiveServer,
  startScriptedLiveServer,
  type Turn,
} from '@latchkey/testkit/network/scripted-live-server';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { afterEach, describe, expect, it } from 'vitest';
import { run } from '../testing/run.ts';
import { describeState } from './listen.ts';

const KEY_EXPIRING = JSON.stringify({
  ...JSON.parse(readyText(0, false)),
  type: 'latchkey.connection.key_expiring',
  data: { expiresAt: '2026-05-19T09:00:00.000Z' },
});
const KEY = 'lk_sock_00000000000000000000000000000000';

let server: ScriptedLiveServer;
const cleanUps: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const env = { LATCHKEY_SOCKET_KEY: ` ${KEY}\n` };

/** Starts a server that takes these turns, and returns the arguments that listen to it. */
async function serve(turns: readonly Turn[]): Promise<string[]> {
  server = await startScriptedLiveServer(turns);
  cleanUps.push(() => server.stop());
  return ['listen', '--url', server.url];
}

/** Runs the command in this process. */
const listen = async (turns: readonly Turn[], ...args: string[]) => run([...(await serve(turns)), ...args], env);

/** Starts the command as a process. */
async function startListen(turns: readonly Turn[]) {
  const command = [join(import.meta.dirname, '../main.ts'), ...(await serve(turns))];
  const child = spawn(process.execPath, command, { env: { ...programEnv(), ...env }, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'close').then(([code]) => code);
  cleanUps.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended };
}

const send =
  (texts: readonly string[], closeCode?: number): Turn =>
  (socket) => {
    for (const text of texts) socket.send(text);
    if (closeCode !== undefined) socket.close(closeCode);
  };

describe('latchkey listen', { timeout: 30_000 }, () => {
  it('prints a line for each event, and what it does on standard error', async () => {
    const { code, stdout, stderr } = await listen([
      send([readyText(4, false), eventText(5)], 1001),
      (socket) => {
        for (const text of [readyText(6, true), eventText(6)]) socket.send(text);
        socket.once('pong', () => socket.terminate());
        socket.ping();
      },
      send([readyText(9, false), eventText(10)], 4102),
    ]);
    const line = (n: number) => {
      const data = `{"version":"1.${n}","previousVersion":"1.${n - 1}"}`;
      return `2026-05-12T09:00:00.000Z  #${n}  latchkey.application.version_changed  ${data}\n`;
    };
    expect(stdout).toBe([5, 6, 10].map(line).join(''));
    const connected = 'Connected to Difference Engine: online, version 1.0.';
    expect(stderr.replace(/\d+\.\d s/g, 'N s').split('\n')).toEqual([
      `${connected} Begins after #4.`,
      'Not connected: the service is stopping. Trying again in N s.',
      `${connected} Resumed: nothing is missed.`,
      'Not connected: the connection was lost. Trying again in N s.',
      `${connected} Missed what is no longer stored, and goes on after #9.`,
      'The application was deleted.',
      '',
    ]);
    expect(code).toBe(0);
  });

  it('prints each frame once, as it came, for --json', async () => {
    const begun = [readyText(8, false), eventText(9)];
    const resumed = [readyText(9, true), eventText(10)];
    const { code, stdout } = await listen([send(begun, 1001), send(resumed, 4102)], '--json', '--from', '7');
    expect([code, stdout]).toEqual([0, [...begun, ...resumed].map((text) => `${text}\n`).join('')]);
    expect(server.requests[0]?.headers['last-event-id']).toBe('7');
  });

  it.each([
    [3, [{ status: 401 }], /^The socket key is rejected: .* Check LATCHKEY_SOCKET_KEY\.\n$/],
    [
      1,
      [send([readyText(0, false), KEY_EXPIRING], 4103)],
      /\nThe socket key was rotated, and ends at 2026-05-19T09:00:00\.000Z\.\nThe socket key was rotated\. .*\n$/,
    ],
  ])('ends with code %i and a sentence where its key is no longer good', async (code, turns, sentence) => {
    expect(await listen(turns)).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(sentence) });
  });

  it('quotes a malformed frame without its control characters', async () => {
    const { code, stdout, stderr } = await listen([send(['\u009b2J\u202e'])]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^SyntaxError: .*u009b/);
    expect(stderr).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
  });

  it('ends with code 0 at a signal, and when its reader goes away', async () => {
    const turn: Turn = (socket) => {
      socket.send(readyText(0, false));
      let sequence = 0;
      const timer = setInterval(() => socket.send(eventText(++sequence)), 10);
      socket.on('close', () => clearInterval(timer));
    };
    for (const end of [(child: ChildProcess) => child.kill('SIGINT'), (child: ChildProcess) => child.stdout?.destroy()]) {
      const { child, ended } = await startListen([turn]);
      await once(child.stdout, 'data');
      end(child);
      expect(await ended).toBe(0);
    }
  });
});

it('names a sequence that does not exist', () => {
  expect(describeState({ state: 'connected', ready: JSON.parse(readyText(4, false)) }, '99')).toBe(
    'Connected to Difference Engine: online, version 1.0. There is no #99: begins after #4.',
  );
});
