import { parseArgs } from 'node:util';
import type { Command } from './command.ts';
import { COMMANDS } from './commands.ts';

/** What the command line asks for. */
export type AccountsArguments =
  | { readonly help: true }
  | {
      readonly help: false;
      readonly json: boolean;
      readonly command: Command;
      readonly positionals: readonly string[];
      readonly values: Readonly<Record<string, string | boolean | undefined>>;
    };

const COMMON = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
/** Most of a key: longer than any username is, which may begin as keys do. */
const KEY_TEXT = /lk_(mgmt|sock|http)_\w{25}/;

/**
 * @returns what is asked for
 * @throws {Error} with a sentence about what is wrong with the arguments. It names none of their values: somebody may have typed a secret
 */
export function readAccountsArguments(args: readonly string[]): AccountsArguments {
  const [name = '', ...rest] = args;
  if (['help', '--help', '-h'].includes(name)) return { help: true };
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new Error(name === '' ? 'A command is needed.' : 'There is no such command.');
  const { values, positionals } = parse(rest, command);
  if (values.help === true) return { help: true };
  if (rest.some((arg) => KEY_TEXT.test(arg))) {
    throw new Error('Name a key by its public id and not by its text: others can see what a command is called with.');
  }
  const missing = Object.keys(command.options).filter((option) => command.options[option]?.required && !values[option]);
  if (missing.length > 0) throw new Error(`${name} needs ${missing.map((option) => `--${option}`).join(' and ')}.`);
  for (const [option, { fault }] of Object.entries(command.options)) {
    const wrong = values[option] === undefined ? undefined : fault?.(String(values[option]));
    if (wrong) throw new Error(`--${option} ${wrong}.`);
  }
  if (positionals.length !== command.positionals.length) {
    const wanted = command.positionals.length === 0 ? 'options only' : command.positionals.join(' and ');
    throw new Error(`${name} takes ${wanted}.`);
  }
  return { help: false, json: values.json === true, command, positionals, values };
}

function parse(args: readonly string[], command: Command) {
  const options = Object.entries({ ...command.options, ...COMMON }).map(([option, { type, ...more }]) => {
    return [option, { type, ...('short' in more && { short: more.short }) }] as const;
  });
  try {
    return parseArgs({ args: [...args], options: Object.fromEntries(options), allowPositionals: true });
  } catch (err) {
    // The sentence ends where advice about values begins.
    throw new Error(`${(err as Error).message.split(/[.\n]/)[0]}.`);
  }
}

/** @param command how the command is called, such as `npm run accounts --` */
export function accountsHelp(command: string): string {
  const lines = Object.entries(COMMANDS).map(([name, { usage, summary }]) => `  ${name} ${usage}\n      ${summary}`);
  return `Usage: ${command} COMMAND [--json]

${lines.join('\n')}

ACCOUNT is an email, a username or an id. A password is read from standard input, where a terminal asks
for it twice, and a pipe gives one line; or --generate makes one and shows it once. What is changed holds
from the next request on. It may run while Latchkey does.

What begins with a dash comes after an equals sign, as in --username=-ada, or after all options and two
dashes, as in: reset-password --generate -- -ada

  --json   print one JSON object, also of what was refused
  --help   show this

Exit code: 0 done; 1 refused, not found or failed, with the reason; 2 wrong usage.
`;
}
