import { Readable } from 'node:stream';
import { readIdentityConfig } from '../config.ts';
import { type AccountsTarget, explain, parseAccountsCall, runAccounts } from '../operator/accounts-process.ts';
import type { TestIdentity } from './identity.ts';

export interface CallOptions {
  /** Standard input. */
  readonly input?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly listeners?: AccountsTarget['listeners'];
}

/** Runs an operator's command in this process: its JSON, or the reason and message of its error. */
export async function runCommand({ env }: Pick<TestIdentity, 'env'>, args: readonly string[], options: CallOptions = {}) {
  const call = parseAccountsCall(args);
  if (call === 'help') throw new Error('Help was asked for');
  let hints = '';
  const input = Readable.from(options.input === undefined ? [] : [Buffer.from(options.input)]);
  try {
    const config = readIdentityConfig({ ...env, ...options.env });
    const target = { config, listeners: options.listeners ?? ('by-redis' as const), close: async () => undefined };
    const { text, json } = await runAccounts(target, call, input, { write: (line: string) => (hints += line) });
    return { text, hints, ...JSON.parse(JSON.stringify(json)) };
  } catch (err) {
    return { ...explain(err), hints };
  }
}
