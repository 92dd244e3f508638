// To add a command: write src/commands/<noun>.ts with `export function <noun>Command(io: Io)` that
// returns a commander `Command`, and add it to `createProgram`. Each verb ends in
//   .action(withContext(io, async (context, argument: string, options: Options) => { … }))
// The context has the client (`await context.client()`), `print(data, text)` for the result
// (stdout; `data` for --json), `note(line)` for progress (stderr), `confirm(message)` and
// `prompts`. Throw a `CliError(outcome, 'What happened. What to do.')`; its outcome decides the
// exit code. Errors of the client need no handling. Give each command `examples(command, […])`:
// they are in --help and in docs/cli.md, which `npm run generate` writes.
import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import pc from 'picocolors';
import manifest from '../../package.json' with { type: 'json' };
import { type AdminPrograms, adminCommand } from '../commands/admin.ts';
import { apiKeysCommand } from '../commands/api-keys.ts';
import { applyCommand, exportCommand } from '../commands/apply.ts';
import { appsCommand } from '../commands/apps.ts';
import { auditCommand } from '../commands/audit.ts';
import { completeCommand, completionCommand } from '../commands/completion.ts';
import { eventsCommand } from '../commands/events.ts';
import { filesCommand } from '../commands/files.ts';
import { keysCommand } from '../commands/keys.ts';
import { levelsCommand } from '../commands/levels.ts';
import { limitsCommand } from '../commands/limits.ts';
import { listenCommand } from '../commands/listen.ts';
import { loginCommand } from '../commands/login.ts';
import { logoutCommand } from '../commands/logout.ts';
import { releaseCommand } from '../commands/release.ts';
import { trustedIssuersCommand } from '../commands/trusted-issuers.ts';
import { uploadsCommand } from '../commands/uploads.ts';
import { whoamiCommand } from '../commands/whoami.ts';
import { helpConfiguration } from '../output/help.ts';
import { printable, printableLines } from '../output/text.ts';
import { examples } from './command.ts';
import { hasColors } from './context.ts';
import { EXIT, toCliError } from './errors.ts';
import type { Io } from './io.ts';

/** @param admin what `latchkey admin` can run here */
export function createProgram(io: Io, admin: AdminPrograms = {}): Command {
  const program = new Command('latchkey')
    .description('Applications, their files and live events, from the command line.')
    .version(manifest.version, '-V, --version', 'print the version')
    .option('--json', 'print the response as one JSON document')
    .option('--profile <name>', 'use this profile of "latchkey login"')
    .option('-v, --verbose', 'print requests with their ids, and error responses')
    .configureHelp(helpConfiguration(pc.createColors(hasColors(io))))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      getOutHasColors: () => hasColors(io),
      getErrHasColors: () => hasColors(io),
      getOutHelpWidth: () => io.stdout.columns || 80,
      // The error is printed once it is caught.
      outputError: () => undefined,
    });
  program.commandsGroup('Most used:');
  for (const create of [loginCommand, appsCommand, filesCommand, releaseCommand, listenCommand, eventsCommand, limitsCommand])
    program.addCommand(create(io));
  program.commandsGroup('More:');
  const more = [
    levelsCommand,
    keysCommand,
    uploadsCommand,
    applyCommand,
    exportCommand,
    apiKeysCommand,
    trustedIssuersCommand,
    auditCommand,
    whoamiCommand,
  ];
  for (const create of [...more, logoutCommand, completionCommand]) program.addCommand(create(io));
  program.addCommand(adminCommand(io, admin));
  program.addCommand(completeCommand(io, program), { hidden: true });
  examples(program, [
    ['latchkey login', 'Sign in on this machine'],
    ['latchkey files upload dist/* --app "Difference Engine"', 'Upload a release'],
  ]);
  return inheritSettings(program);
}

/** Commands that are added do not inherit the settings of the program by themselves. */
function inheritSettings(command: Command): Command {
  if (command.commands.length > 0) command.helpCommand(false).usage('<command>');
  for (const child of command.commands) inheritSettings(child.copyInheritedSettings(command));
  return command.helpOption('-h, --help', 'print this help');
}

/** @returns the exit code */
export async function runProgram(args: readonly string[], io: Io, admin: AdminPrograms = {}): Promise<number> {
  const program = createProgram(io, admin);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync(args[0] === 'help' ? [...args.slice(1), '--help'] : [...args], { from: 'user' });
    return 0;
  } catch (err) {
    return err instanceof CommanderError ? reportUsage(err, program, args, io) : reportError(err, io);
  }
}

function reportError(err: unknown, { stderr }: Io): number {
  try {
    const { message, outcome } = toCliError(err);
    stderr.write(`${printable(message)}\n`);
    return EXIT[outcome];
  } catch {
    // An error of programming may quote a response, which Node.js would print as it is.
    stderr.write(`${printableLines(inspect(err))}\n`);
    return EXIT.failed;
  }
}

/** Commander ends with an error after help, too. */
function reportUsage({ exitCode, message, code }: CommanderError, program: Command, args: readonly string[], io: Io): number {
  if (exitCode === 0) return 0;
  if (code === 'commander.help') return EXIT.usage;
  const text = message
    .replace(/^error: /, '')
    .replace(/\s*\n\s*/g, ' ')
    .replace(/\.+$/, '');
  const help = `${findCommandPath(program, args)} --help`;
  io.stderr.write(`${printable(text.charAt(0).toUpperCase() + text.slice(1))}. See "${help}".\n`);
  return EXIT.usage;
}

/** The command that the arguments name, as far as there is one. */
function findCommandPath(program: Command, args: readonly string[]): string {
  let command = program;
  const path = [program.name()];
  for (const arg of args) {
    const child = command.commands.find((candidate) => candidate.name() === arg);
    if (!child) continue;
    command = child;
    path.push(arg);
  }
  return path.join(' ');
}
