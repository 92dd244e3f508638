import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/program-env';
import { afterEach, describe, expect, it } from 'vitest';
import {
  eventText,
  readyText,
  type ScriptedLiveServer,
  startScriptedLiveServer,
  type Turn,
} from './testing/scripted-live-server.ts';

const MAIN = fileURLToPath(new URL('listen-main.ts', import.meta.url));
const KEY = 'lk_sock_00000000000000000000000000000000';

let server: ScriptedLiveServer | undefined;
const cleanUps: Array<() => unknown> = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  await server?.stop();
  server = undefined;
});

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...programEnv(), ...env }, stdio: 'pipe' });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk: Buffer) => {
      said[name] += chunk.toString();
    });
  }
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.on('close', (code) => resolve({ code, ...said }));
  });
  cleanUps.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { child, ended, said };
}

/** Runs the command against a server that takes these turns. */
async function listen(turns: readonly Turn[], ...args: string[]) {
  server = await startScriptedLiveServer(turns);
  return run([KEY, '--url', server.url, ...args]);
}

const send =
  (texts: readonly string[], closeCode?: number): Turn =>
  (socket) => {
    for (const text of texts) socket.send(text);
    if (closeCode !== undefined) socket.close(closeCode);
  };

describe('npm run listen', { timeout: 30_000 }, () => {
  it('prints a line for each event, and says apart from them what it does', async () => {
    const { ended } = await listen([
      (socket) => {
        for (const text of [readyText(4, false), eventText(5)]) socket.send(text);
        socket.close(1001, 'reconnect after a random delay');
      },
      (socket) => {
        for (const text of [readyText(6, true), eventText(6)]) socket.send(text);
        socket.once('pong', () => socket.terminate());
        socket.ping();
      },
      send([readyText(9, false), eventText(10)], 4102),
    ]);
    const { code, stdout, stderr } = await ended;
    expect(stdout).toBe(
      [5, 6, 10]
        .map((n) => {
          const data = `{"version":"1.${n}","previousVersion":"1.${n - 1}"}`;
          return `2026-05-12T09:00:00.000Z  #${n}  latchkey.application.version_changed  ${data}\n`;
        })
        .join(''),
    );
    const connected = 'Connected to Difference Engine: online, version 1.0.';
    expect(stderr.replace(/\d\.\d s/g, 'N s').split('\n')).toEqual([
      `${connected} Begins after #4.`,
      'Not connected: the service is stopping. Trying again in N s.',
      `${connected} Resumed: nothing is missed.`,
      'Not connected: the connection was lost. Trying again in N s.',
      `${connected} Missed what is no longer held, and goes on after #9.`,
      'The application was deleted.',
      '',
    ]);
    expect(code).toBe(0);
  });

  it('prints the frames as they came for --json, and begins where --from says', async () => {
    const frames = [readyText(8, true), eventText(8), eventText(9)];
    const { ended } = await listen([send(frames, 4102)], '--json', '--from', '7');
    const { code, stdout } = await ended;
    expect([code, stdout]).toEqual([0, frames.map((text) => `${text}\n`).join('')]);
    expect(server?.requests[0]?.headers['last-event-id']).toBe('7');
  });

  it('prints `ready` once also where it stands in for events', async () => {
    const frames = [readyText(8, false), eventText(9)];
    const { ended } = await listen([send(frames, 4102)], '--json');
    expect((await ended).stdout).toBe(frames.map((text) => `${text}\n`).join(''));
  });

  it('does not say that something was missed where there was no such event', async () => {
    const { ended } = await listen([send([readyText(4, false)], 1001), send([readyText(2, false)], 4102)], '--from', '99');
    const connected = /^Connected .*version 1\.0\. (.*)$/gm;
    expect([...(await ended).stderr.matchAll(connected)].map(([, start]) => start)).toEqual([
      'There is no #99: begins after #4.',
      'There is no #4: begins after #2.',
    ]);
  });

  it.each([
    [400, /wss:\/\//],
    [404, /Is the URL right\? It ends in \/api\/v1\/realtime, on port 8081/],
    [405, /Is the URL right\?/],
    [426, /proxy/],
  ])('ends with a sentence at HTTP %i', async (status, sentence) => {
    const { code, stdout, stderr } = await (await listen([{ status }])).ended;
    expect([code, stdout, stderr.split('\n')]).toEqual([1, '', [expect.stringMatching(sentence), '']]);
    expect(stderr.startsWith(`HTTP ${status}: `)).toBe(true);
  });

  it('says so where no TLS is spoken', async () => {
    server = await startScriptedLiveServer([]);
    const { said } = run([KEY, '--url', server.url.replace('ws:', 'wss:')]);
    await eventually(() => said.stderr.startsWith('Not connected: no TLS is spoken there: '), { timeoutMs: 15_000 });
  });

  it('says that the key is refused, or was rotated', async () => {
    const refused = await (await listen([{ status: 401 }])).ended;
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^The socket key is refused: .*\n$/) });
    await server?.stop();
    const rotated = await (await listen([send([readyText(0, false)], 4103)])).ended;
    expect(rotated).toMatchObject({ code: 1, stderr: expect.stringMatching(/\nThe socket key was rotated: .*\n$/) });
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('ends in order at %s, while it listens and while it waits', async (signal) => {
    const listening = await listen([send([readyText(0, false)])]);
    await eventually(() => listening.said.stderr.includes('Connected'), { timeoutMs: 15_000 });
    listening.child.kill(signal);
    expect(await listening.ended).toMatchObject({ code: 0, stdout: '' });
    await eventually(() => server?.open.size === 0);
    await server?.stop();
    const waiting = await listen([{ status: 503, headers: { 'Retry-After': '60' } }]);
    await eventually(() => waiting.said.stderr.startsWith('Not connected: HTTP 503. Trying again in 6'), { timeoutMs: 15_000 });
    waiting.child.kill(signal);
    expect(await waiting.ended).toMatchObject({ code: 0 });
  });

  it('ends without a word when nobody reads any more', async () => {
    const { child, ended, said } = await listen([
      (socket) => {
        socket.send(readyText(0, false));
        // Goes on, as the first line after the end of the reader may still find room.
        let sequence = 0;
        const timer = setInterval(() => {
          sequence += 1;
          socket.send(eventText(sequence));
        }, 10);
        socket.on('close', () => clearInterval(timer));
      },
    ]);
    await eventually(() => said.stdout.includes('\n'), { timeoutMs: 15_000 });
    child.stdout.destroy();
    const { code, stderr } = await ended;
    expect([code, stderr.trim().split('\n').length]).toEqual([0, 1]);
  });

  it('takes the key from the environment, where others do not see it', async () => {
    server = await startScriptedLiveServer([send([readyText(0, false)], 4102)]);
    expect(await run(['--url', server.url], { LATCHKEY_SOCKET_KEY: ` ${KEY}\r\n` }).ended).toMatchObject({ code: 0 });
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it('goes where REALTIME_PORT says', async () => {
    server = await startScriptedLiveServer([send([readyText(0, false)], 4102)]);
    const REALTIME_PORT = new URL(server.url).port;
    expect(await run([KEY], { REALTIME_PORT }).ended).toMatchObject({ code: 0 });
    expect(await run([KEY], { REALTIME_PORT: 'many' }).ended).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^REALTIME_PORT is no port/),
    });
  });

  it('lets no text of the service command the terminal', async () => {
    const ready = readyText(0, false, 'Engine \u001b[2J\u009b31m\r');
    const { stderr } = await (await listen([send([ready], 4102)])).ended;
    expect(stderr).toContain('Connected to Engine \\u001b[2J\\u009b31m\\u000d: online');
  });

  it.each([
    [[], 'There is no socket key.'],
    [[KEY, KEY], 'There is more than one socket key.'],
    [['lk_sock_\n'], 'The socket key has characters that no key has.'],
    [[KEY, '--url', 'localhost:8081'], '--url must be a ws:// or wss:// URL.'],
    [[KEY, '--from', '-1'], "Option '--from' argument is ambiguous."],
    [[KEY, '--from', 'first'], '--from must be the sequence of an event, such as 0 or 17.'],
    [[KEY, '--wrong'], "Unknown option '--wrong'"],
  ])('shows how it is used for %j', async (args, sentence) => {
    const { code, stdout, stderr } = await run(args).ended;
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.startsWith(sentence)).toBe(true);
    expect(stderr).toContain('\n\nUsage: LATCHKEY_SOCKET_KEY=<socketKey> npm run listen');
  });

  it('shows how it is used when asked, with the key hidden', async () => {
    const { code, stdout } = await run(['--help']).ended;
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^Usage: LATCHKEY_SOCKET_KEY=<socketKey> npm run listen[\s\S]*list of processes/),
    ]);
  });
});
