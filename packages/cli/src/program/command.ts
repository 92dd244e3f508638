import type { Latchkey } from '@latchkey/client';
import { KEY_OVERLAP_SECONDS_MAX } from '@latchkey/contract/key-overlap';
import { USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { Command, InvalidArgumentError, Option } from 'commander';
import { type SessionOptions, withSession } from '../session/session.ts';
import { Context, type GlobalOptions } from './context.ts';
import type { Io } from './io.ts';

/** Lines of help that show how a command is used: the command, then what it does. */
export type Example = readonly [line: string, purpose: string];

/** A command whose handler gets a context. Its examples are in its help and in docs/cli.md. */
export class CliCommand extends Command {
  readonly #io: Io;
  exampleList: readonly Example[] = [];

  constructor(io: Io, name?: string) {
    super(name);
    this.#io = io;
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(this.#io, name);
  }

  group(name: string): CliCommand {
    return this.command(name).usage('<command>').helpCommand(false);
  }

  // biome-ignore lint/suspicious/noExplicitAny: commander does not type the arguments of actions.
  run(handler: (context: Context, ...args: any[]) => Promise<void> | void): this {
    return this.action(async (...args: unknown[]) => {
      const command = args.pop() as Command;
      await handler(new Context(this.#io, command.optsWithGlobals<GlobalOptions>()), ...args);
    });
  }

  /** Options of a command that signs in. */
  sessionOptions(): this {
    return this.option('--email <email>', 'email of the account (that of the profile)').option(
      '--password-stdin',
      'read the password from standard input, and the code from its second line',
    );
  }

  /** Runs a handler with a session: its client comes after the context. */
  // biome-ignore lint/suspicious/noExplicitAny: commander does not type the arguments of actions.
  runInSession(handler: (context: Context, client: Latchkey, ...args: any[]) => Promise<void>): this {
    return this.sessionOptions().run((context, ...args) =>
      withSession(context, args.at(-1) as SessionOptions, (client) => handler(context, client, ...args)),
    );
  }

  examples(...list: readonly Example[]): this {
    this.exampleList = list;
    const lines = list.map(([line, purpose]) => `  # ${purpose}\n  $ ${line}`);
    return this.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
  }
}

export const APP = ['<app>', 'name or id of the application'] as const;

export const yesOption = () => new Option('-y, --yes', 'do not ask');

export const appOption = () => new Option('-a, --app <app>', 'name or id of the application').makeOptionMandatory();

/** Reads a whole number. @param rule of the number, for the error */
export const wholeNumber =
  (min: number, max: number, rule = `${min} to ${max}`) =>
  (text: string): number => {
    if (/^\d+$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`It must be ${rule}.`);
  };

export const daysOption = () =>
  new Option('--days <days>', `days up to today (UTC), 1 to ${USAGE_DAYS_MAX}`)
    .default(30)
    .argParser(wholeNumber(1, USAGE_DAYS_MAX));

/** Its value is in seconds. */
export const overlapOption = () =>
  new Option('--overlap <time>', 'how long the old key stays valid, such as 30m, 24h or 7d; not at all without it').argParser(
    readOverlap,
  );

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 };

function readOverlap(text: string): number {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const seconds = Number(amount) * SECONDS[unit as keyof typeof SECONDS];
  if (seconds <= KEY_OVERLAP_SECONDS_MAX) return seconds;
  throw new InvalidArgumentError(
    `It must be a time such as 30m, 24h or 7d, and ${KEY_OVERLAP_SECONDS_MAX / SECONDS.d} days at most.`,
  );
}
