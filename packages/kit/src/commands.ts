/** A command of a program beside what it does without one. */
export interface Command {
  /** What it does, in a few words. */
  readonly summary: string;
  /** Whether it reads arguments, and its own `--help`. It is given none unless set. */
  readonly takesArguments?: boolean;
  run(args: readonly string[]): Promise<void>;
}

/** What a program can be told to do. */
export interface Program {
  /** How it is called, such as `node services/apps/src/main.ts`. */
  readonly program: string;
  /** By name, in the order of the alphabet. */
  readonly commands: Readonly<Record<string, Command>>;
  /** What it does without a command. */
  serve(): Promise<void>;
}

const EXIT_USAGE = 2;
const HELP = new Set(['--help', '-h', 'help']);

/** Does what the arguments of this process ask for. A command that there is not ends it at once: a mistyped one must not start the service instead. */
export async function runProgram(program: Program, [name, ...args] = process.argv.slice(2)): Promise<void> {
  if (name === undefined) return program.serve();
  const command = Object.hasOwn(program.commands, name) ? program.commands[name] : undefined;
  const isHelpAsked = HELP.has(name) || (command && !command.takesArguments && HELP.has(args[0] ?? ''));
  if (isHelpAsked) process.stdout.write(helpOf(program));
  else if (!command) refuse(`There is no command ${name}; ${choiceOf(program)}. See --help.`);
  else if (args.length > 0 && !command.takesArguments) refuse(`${name} takes no arguments.`);
  else await command.run(args);
}

function refuse(why: string): void {
  process.stderr.write(`${why}\n`);
  process.exitCode = EXIT_USAGE;
}

function choiceOf({ commands }: Program): string {
  const names = Object.keys(commands);
  if (names.length === 0) return 'there is none';
  return `${names.length === 1 ? 'there is' : 'there are'} ${names.join(', ').replace(/, ([^,]*)$/, ' and $1')}`;
}

function helpOf({ program, commands }: Program): string {
  const names = Object.keys(commands);
  const width = Math.max(0, ...names.map((name) => name.length));
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}\n`);
  const usage = `Usage: ${program}${names.length > 0 ? ' [command]' : ''}\n\nWithout a command the service starts. Settings: docs/settings.md\n`;
  return lines.length > 0 ? `${usage}\nCommands:\n${lines.join('')}` : usage;
}
