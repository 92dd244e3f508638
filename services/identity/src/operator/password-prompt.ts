import { isUtf8 } from 'node:buffer';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { commandError } from './commands.ts';

export type PasswordInput = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Longer than any valid password in any encoding of its characters. */
const LINE_BYTES_MAX = 4_096;

/**
 * Reads a new password: a terminal asks twice without echo, other input gives its first line.
 * @param prompts where a terminal shows the questions
 * @throws {DomainError} without a password, and for two different ones
 */
export async function readNewPassword(input: PasswordInput, prompts: { write(text: string): unknown }): Promise<string> {
  const password = await (input.isTTY ? askTwice(input, prompts) : readFirstLine(input));
  if (password === '') {
    throw commandError('password_missing', 'There is no password on standard input: give one there, or use --generate');
  }
  return password;
}

async function askTwice(input: PasswordInput, prompts: { write(text: string): unknown }): Promise<string> {
  // A terminal is echoed to the output of its interface alone.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output, terminal: true, historySize: 0 });
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  const answers = lines[Symbol.asyncIterator]();
  const ask = async (question: string): Promise<string> => {
    prompts.write(question);
    const { value = '' } = await answers.next();
    prompts.write('\n');
    return value;
  };
  try {
    const password = await ask('New password: ');
    if (password === '' || (await ask('The same again: ')) === password) return password;
    throw commandError('passwords_differ', 'The two passwords are different');
  } finally {
    lines.close();
  }
}

async function readFirstLine(input: PasswordInput): Promise<string> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of input) {
    bytes = Buffer.concat([bytes, Buffer.from(chunk as Buffer)]);
    if (bytes.includes('\n') || bytes.length > LINE_BYTES_MAX) break;
  }
  // A password that was changed on its way would lock the owner out.
  if (!isUtf8(bytes)) throw commandError('password_invalid', 'The password on standard input is not UTF-8');
  const [line = ''] = bytes.toString().split(/\r?\n/, 1);
  return line;
}
