import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, test } from 'vitest';
import { explainFailure } from './explain-failure.ts';
import { readNewPassword } from './password-input.ts';

const PASSWORD = 'correct horse battery';

/** A terminal with somebody who types once they are asked. */
function startTyping() {
  const raw: boolean[] = [];
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (on: boolean) => void raw.push(on) });
  let shown = '';
  const outcome = readNewPassword(input, { write: (text) => (shown += text) }).catch(
    (err: unknown) => explainFailure(err).reason,
  );
  const answer = async (text: string) => {
    const asked = shown.length;
    input.write(text);
    await eventually(() => shown.length > asked);
  };
  return { input, outcome, answer, raw, shown: () => shown };
}

test('a terminal asks twice, shows nothing of what is typed, and is left as it was', async () => {
  const terminal = startTyping();
  await terminal.answer(`${PASSWORD}\r`);
  await terminal.answer(`${PASSWORD}\r`);
  expect(await terminal.outcome).toBe(PASSWORD);
  expect(terminal.shown()).toBe('New password: \nThe same again: \n');
  expect(terminal.raw).toEqual([true, false]);
});

test('a terminal takes what is corrected, and what is typed ahead', async () => {
  const terminal = startTyping();
  await terminal.answer(`wrong\u0015${PASSWORD}x\u007f\r${PASSWORD}\r`);
  expect(await terminal.outcome).toBe(PASSWORD);
});

test('a terminal refuses two passwords that are different, and the end of input', async () => {
  const different = startTyping();
  await different.answer(`${PASSWORD}\r`);
  await different.answer(`${PASSWORD} \r`);
  expect(await different.outcome).toBe('passwords_differ');
  const ended = startTyping();
  await ended.answer('\u0004');
  expect(await ended.outcome).toBe('password_missing');
  for (const { raw } of [different, ended]) expect(raw.at(-1)).toBe(false);
});

test('Ctrl-C at a terminal leaves it as it was and interrupts the process', async () => {
  const terminal = startTyping();
  const interrupted = once(process, 'SIGINT');
  terminal.input.write('\u0003');
  await interrupted;
  expect(terminal.raw).toEqual([true, false]);
});

test('a pipe that stays open is read to the end of the first line only', async () => {
  const pipe = new PassThrough();
  const password = readNewPassword(pipe, { write: () => undefined });
  for (const part of ['correct hor', 'se battery', '\n']) pipe.write(part);
  expect(await password).toBe(PASSWORD);
});
