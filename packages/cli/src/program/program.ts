// To add a command: write src/commands/<noun>.ts with
// `export function add<Noun>(program: CliCommand)`, and name it in `createProgram`. Each verb is
//   noun.command('verb').description('…').run(async (context, argument, options) => { … })
// The context has the client (`await context.client()`), `print(data, text)` for the result
// (stdout; `data` for --json), `note(line)` for progress (stderr), `confirm(message)` and
// `prompts`. Throw a `CliError(outcome, 'What happened. What to do.')`; its outcome decides the
// exit code. Errors of the client need no handling. Give each command `.examples([…])`: they are in
// --help and in docs/cli.md, which `npm run generate` writes.
import { inspect } from 'node:util';
import { type Command, CommanderError } from 'commander';
import pc from 'picocolors';
import manifest from '../../package.json' with { type: 'json' };
import { type AdminPrograms, addAdmin } from '../commands/admin.ts';
import { addApiKeys } from '../commands/api-keys.ts';
import { addApply } from '../commands/apply.ts';
import { addApps } from '../commands/apps.ts';
import { addAudit } from '../commands/audit.ts';
import { addCompletion } from '../commands/completion.ts';
import { addEvents } from '../commands/events.ts';
import { addFiles } from '../commands/files.ts';
import { addKeys } from '../commands/keys.ts';
import { addLevels } from '../commands/levels.ts';
import { addLimits } from '../commands/limits.ts';
import { addListen } from '../commands/listen.ts';
import { addLogin } from '../commands/login.ts';
import { addLogout } from '../commands/logout.ts';
import { addRelease } from '../commands/release.ts';
import { addTrustedIssuers } from '../commands/trusted-issuers.ts';
import { addUploads } from '../commands/uploads.ts';
import { addWhoami } from '../commands/whoami.ts';
import { helpConfiguration } from '../output/help.ts';
import { printable, printableLines } from '../output/text.ts';
import { CliCommand } from './command.ts';
import { hasColors } from './context.ts';
import { EXIT, toCliError } from './errors.ts';
import type { Io } from './io.ts';

/** @param admin what `latchkey admin` can run here */
export function createProgram(io: Io, admin: AdminPrograms = {}): CliCommand {
  const program = new CliCommand(io, 'latchkey')
    .usage('<command>')
    .description('Applications, their files and live events, from the command line.')
    .version(manifest.version, '-V, --version', 'print the version')
    .option('--json', 'print the response as one JSON document')
    .option('--profile <name>', 'use this profile of "latchkey login"')
    .option('-v, --verbose', 'print requests with their ids, and error responses')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
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
    })
    .examples(
      ['latchkey login', 'Sign in on this machine'],
      ['latchkey files upload dist/* --app "Difference Engine"', 'Upload a release'],
    );
  program.commandsGroup('Most used:');
  for (const add of [addLogin, addApps, addFiles, addRelease, addListen, addEvents, addLimits]) add(program);
  program.commandsGroup('More:');
  const more = [addLevels, addKeys, addUploads, addApply, addApiKeys, addTrustedIssuers, addAudit, addWhoami, addLogout];
  for (const add of [...more, addCompletion]) add(program);
  addAdmin(program, admin);
  return program;
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
