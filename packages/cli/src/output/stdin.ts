import { CliError } from '../program/errors.ts';

const LENGTH_MAX = 65_536;

/** Reads a secret from standard input: it would be visible to others among the arguments. */
export async function readStdin(stdin: NodeJS.ReadStream): Promise<string> {
  if (stdin.isTTY)
    throw new CliError('usage', 'Standard input is a terminal. Pipe the secret, or leave out the option to be asked.');
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > LENGTH_MAX) throw new CliError('usage', 'Standard input is longer than any password or key.');
  }
  return text;
}
