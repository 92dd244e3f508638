export interface Command {
  readonly summary: string;
  run(): Promise<void>;
}

export interface Program {
  /** Command line, such as `node services/apps/src/main.ts`. */
  readonly program: string;
  readonly commands: Readonly<Record<string, Command>>;
  serve(): Promise<void>;
}

const EXIT_USAGE = 2;
const HELP = new Set(['--help', '-h', 'help']);

/** Runs the command that the arguments name. A typo must not start the service. */
export async function runProgram(program: Program, [name, ...args] = process.argv.slice(2)): Promise<void> {
  if (name === undefined) return program.serve();
  const { commands } = program;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const wantsHelp = HELP.has(name) || (command && HELP.has(args[0] ?? ''));
  if (wantsHelp) process.stdout.write(formatHelp(program));
  else if (!command) fail(`Unknown command ${name}. Commands: ${Object.keys(commands).join(', ') || 'none'}. See --help.`);
  else if (args.length > 0) fail(`${name} takes no arguments.`);
  else await command.run();
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`);
  process.exitCode = EXIT_USAGE;
}

function formatHelp({ program, commands }: Program): string {
  const names = Object.keys(commands);
  const width = Math.max(0, ...names.map((name) => name.length));
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}\n`);
  const usage = `Usage: ${program}${names.length > 0 ? ' [command]' : ''}\n\nWithout a command the service starts. Settings: docs/settings.md\n`;
  return lines.length > 0 ? `${usage}\nCommands:\n${lines.join('')}` : usage;
}
