import type { ActingContext } from '../audit/audit.ts';
import type { Outcome } from './outcome.ts';

/** An option as `parseArgs` of Node.js takes it. */
export interface CommandOption {
  readonly type: 'string' | 'boolean';
  readonly required?: true;
  /** What is wrong with a value, after the option's name: `must be …`. */
  readonly fault?: (text: string) => string | undefined;
}

/** What a command is called with. */
export interface CommandCall {
  readonly ctx: ActingContext;
  /** As many as the command names. */
  readonly positionals: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  /** Reads a new password from standard input. */
  readonly readPassword: () => Promise<string>;
}

/** One of the commands for whoever runs Latchkey. */
export interface Command {
  /** What follows the name, for the help. */
  readonly usage: string;
  /** What it does, for the help. */
  readonly summary: string;
  readonly positionals: readonly string[];
  readonly options: Readonly<Record<string, CommandOption>>;
  run(call: CommandCall): Promise<Outcome>;
}
