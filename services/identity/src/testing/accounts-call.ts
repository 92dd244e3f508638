import { Readable } from 'node:stream';
import { readIdentityConfig } from '../config.ts';
import { readAccountsArguments } from '../operator/accounts-arguments.ts';
import { type AccountsTarget, runAccounts } from '../operator/accounts-command.ts';
import { explainFailure } from '../operator/explain-failure.ts';
import type { Outcome } from '../operator/outcome.ts';
import type { TestServers } from './identity.fixture.ts';

/** What a command is called with beside its arguments. */
export interface CallOptions {
  /** Standard input: a pipe with this in it. */
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly listeners?: AccountsTarget['listeners'];
}

/** What a command did, or `refusal` with the reason. */
export type Called = Partial<Outcome> & {
  /** The outcome as a script gets it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into outcomes of every shape.
  readonly data?: any;
  readonly refusal?: string;
  readonly message?: string;
  /** What was said meanwhile. */
  readonly hints: string;
};

/** Calls commands on the servers of a test file, as `main.ts` does, in this process. */
export function accountsCalls({ databaseUrl, redisUrl }: TestServers) {
  return async (args: readonly string[], options: CallOptions = {}): Promise<Called> => {
    const env = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      SECRET_KEY: 'test-secret-key-of-32-characters!',
      ...options.env,
    };
    const target = {
      config: readIdentityConfig(env),
      listeners: options.listeners ?? ('by-redis' as const),
      close: async () => undefined,
    };
    const wanted = readAccountsArguments(args);
    if (wanted.help) throw new Error('Help was asked for');
    let hints = '';
    const err = { write: (text: string) => (hints += text) };
    const input = Readable.from(options.input === undefined ? [] : [Buffer.from(options.input)]);
    try {
      const outcome = await runAccounts(target, wanted, { input, err });
      return { ...outcome, data: JSON.parse(JSON.stringify(outcome.json)), hints };
    } catch (failure) {
      const { reason, message } = explainFailure(failure);
      return { refusal: reason, message, hints };
    }
  };
}
