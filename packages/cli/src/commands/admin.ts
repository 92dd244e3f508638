import type { CliCommand, Example } from '../program/command.ts';
import { CliError } from '../program/errors.ts';
import type { Io } from '../program/io.ts';

/**
 * Runs a command next to the data, with its arguments, help and exit codes.
 *
 * @param command how it is called, for its help
 */
export type AdminProgram = (command: string, args: readonly string[]) => Promise<void>;

/** Server programs in a checkout or the image. The published package has none. */
export type AdminPrograms = Readonly<Partial<Record<AdminName, AdminProgram>>>;

export type AdminName = keyof typeof COMMANDS;

interface AdminCommand {
  readonly summary: string;
  readonly argument: readonly [name: string, description: string];
  readonly examples: readonly Example[];
}

const COMMANDS = {
  accounts: {
    summary: 'Create and list accounts, reset passwords',
    argument: ['[command...]', 'list, create, reset-password, change-email, two-factor-off, sign-out or revoke-key; see --help'],
    examples: [
      ['latchkey admin accounts list', 'The accounts'],
      ['latchkey admin accounts reset-password ada --generate', 'Give an account another password'],
    ],
  },
  'check-files': {
    summary: 'Compare the database with the object store',
    argument: ['[options...]', '--repair, --skip-checksums or --force; see --help'],
    examples: [['latchkey admin check-files --repair', 'Compare, and repair what is wrong']],
  },
  backup: {
    summary: 'Back up the data folder of npm start',
    argument: ['[path]', 'folder or .tar file, which must not exist'],
    examples: [['latchkey admin backup backups/today.tar', 'Back up DATA_DIR while Latchkey runs']],
  },
  restore: {
    summary: 'Restore a backup to an empty data folder',
    argument: ['[path]', 'folder or .tar file of the backup'],
    examples: [['DATA_DIR=restored latchkey admin restore backups/today.tar', 'Restore to another folder']],
  },
} as const satisfies Readonly<Record<string, AdminCommand>>;

export function addAdmin(program: CliCommand, programs: AdminPrograms): void {
  const admin = program
    .group('admin')
    .summary('Operate the server')
    .description('Operate the server, next to its data: in a checkout or a container')
    .examples(['docker compose exec identity latchkey admin accounts list', 'The accounts of a deployment']);
  for (const [name, { summary, argument, examples }] of Object.entries(COMMANDS) as Array<[AdminName, AdminCommand]>) {
    admin
      .command(name)
      // Passed on to its program.
      .helpOption(false)
      .description(summary)
      .argument(...argument)
      .allowUnknownOption()
      .allowExcessArguments()
      .run(({ io }) => run(name, programs, program, io))
      .examples(...examples);
  }
}

async function run(name: AdminName, programs: AdminPrograms, root: CliCommand, { env }: Io): Promise<void> {
  const program = programs[name];
  if (!program) throw new CliError('failed', whereToRun(name, programs));
  const { rawArgs } = root as CliCommand & { readonly rawArgs: readonly string[] };
  // The arguments as they were given: commander removes its options from them.
  const start = rawArgs.findIndex((arg, index) => arg === name && rawArgs[index - 1] === 'admin') + 1;
  if (start === 0) throw new CliError('usage', `Write options after "latchkey admin ${name}".`);
  await program(env.npm_lifecycle_event === name ? `npm run ${name} --` : `latchkey admin ${name}`, rawArgs.slice(start));
}

function whereToRun(name: AdminName, programs: AdminPrograms): string {
  if (Object.keys(programs).length > 0) {
    return `"latchkey admin ${name}" covers the data folder of npm start. docs/backup.md says how to save your own servers.`;
  }
  const service = name === 'check-files' ? 'files' : 'identity';
  const container =
    name === 'accounts' || name === 'check-files' ? `, or "docker compose exec ${service} latchkey admin ${name}"` : '';
  return `This needs the server's code and data: run "npx latchkey admin ${name}" in the server's checkout${container}.`;
}
