import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { Refused } from './outcome.ts';

/** Where a password comes from: a terminal, or a file or pipe. */
export type PasswordInput = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** More than the longest password that is allowed takes in any form. */
const LINE_BYTES_MAX = 4_096;

/**
 * Reads a new password: from a terminal, which asks for it twice and shows nothing of it, or else the first line that comes.
 *
 * @param prompts where a terminal shows what is asked
 * @throws {Refused} where there is none, or the two are different
 */
export async function readNewPassword(input: PasswordInput, prompts: { write(text: string): unknown }): Promise<string> {
  return input.isTTY ? askTwice(input, prompts) : readFirstLine(input);
}

async function askTwice(input: PasswordInput, prompts: { write(text: string): unknown }): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  // As a terminal, it edits the line itself and echoes it to its output alone.
  const lines = createInterface({ input, output: nowhere, terminal: true, historySize: 0 });
  let interrupted: Promise<unknown> | undefined;
  lines.once('SIGINT', () => {
    interrupted = once(process, 'SIGINT');
    lines.close();
    process.kill(process.pid, 'SIGINT');
  });
  try {
    const answers = lines[Symbol.asyncIterator]();
    const ask = async (prompt: string) => {
      prompts.write(prompt);
      const { value, done } = await answers.next();
      prompts.write('\n');
      if (!done) return value;
      // Whoever ends the process on the signal is to hear of it before of what it cut short.
      await interrupted;
      throw noPassword();
    };
    const password = await ask('New password: ');
    if ((await ask('The same again: ')) !== password) throw new Refused('passwords_differ', 'The two passwords are different.');
    return password;
  } finally {
    lines.close();
  }
}

async function readFirstLine(input: PasswordInput): Promise<string> {
  const chunks: Buffer[] = [];
  let byteSize = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk as Buffer);
    chunks.push(bytes);
    byteSize += bytes.length;
    if (bytes.includes('\n') || byteSize > LINE_BYTES_MAX) break;
  }
  const all = Buffer.concat(chunks);
  const end = all.indexOf('\n');
  const line = decode(end === -1 ? all : all.subarray(0, end)).replace(/\r$/, '');
  if (line === '') throw noPassword();
  return line;
}

/** Strictly: a password that was changed on its way would let nobody in. */
function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Refused('password_invalid', 'The password on standard input is no UTF-8.');
  }
}

function noPassword(): Refused {
  return new Refused('password_missing', 'There is no password on standard input: give one there, or --generate.');
}
