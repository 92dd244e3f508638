import { setTimeout as delay } from 'node:timers/promises';
import { OPERATOR } from '@latchkey/audit/actor';
import { createLogger } from '@latchkey/kit/logger';
import { openContext } from '../compose.ts';
import type { IdentityConfig } from '../config.ts';
import { createEpochsWithoutRedis } from '../epoch/epoch.ts';
import type { AccountsArguments } from './accounts-arguments.ts';
import type { Outcome } from './outcome.ts';
import { type PasswordInput, readNewPassword } from './password-input.ts';

/** Where the accounts are. */
export interface AccountsTarget {
  readonly config: IdentityConfig;
  /**
   * Who hears of a change, so that it holds from the next request on: the gateways, by the Redis that the settings name; nobody, as none runs; or
   * gateways of which nothing is known, which forget by themselves what they know of a credential.
   */
  readonly listeners: 'by-redis' | 'none' | 'unknown';
  close(): Promise<void>;
}

/** The streams of the process. */
export interface AccountsStreams {
  readonly input: PasswordInput;
  /** Gets hints and questions. */
  readonly err: { write(text: string): unknown };
}

/**
 * Runs one command.
 *
 * @throws what {@link explainFailure} has the sentence of
 */
export async function runAccounts(
  { config, listeners }: AccountsTarget,
  { command, positionals, values }: Extract<AccountsArguments, { help: false }>,
  { input, err }: AccountsStreams,
): Promise<Outcome> {
  const wait = async (ms: number) => {
    const why =
      listeners === 'unknown' ? 'No Redis is known, as REDIS_URL is not set and none was found' : 'Redis does not answer';
    err.write(`${why}: waiting ${ms / 1_000} s, after which it holds everywhere.\n`);
    await delay(ms);
  };
  const withoutRedis = createEpochsWithoutRedis(listeners === 'none' ? async () => undefined : wait);
  // The outcome is told, and nothing else: not even what failed is logged.
  const logger = createLogger('identity', 'silent');
  const opened = openContext(config, logger, { wait, ...(listeners !== 'by-redis' && { epochs: withoutRedis }) });
  try {
    await opened.connect();
    const ctx = { ...opened.ctx, origin: OPERATOR };
    return await command.run({ ctx, positionals, values, readPassword: () => readNewPassword(input, err) });
  } finally {
    await opened.close();
  }
}
