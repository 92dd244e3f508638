import { parseId } from '@latchkey/kit/id';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { fingerprintOf } from '../runtime-key/vault.ts';
import { selectLiveStates } from './live-state.store.ts';

/** What tells whether the live clients of an application are up to date. */
export interface LiveState {
  readonly applicationId: string;
  readonly lastSequence: bigint;
  readonly socketKeyFingerprint: string;
}

const IDS_MAX = 1_000;

/**
 * The states of those of the ids that are applications, each once, in no order.
 *
 * @param texts up to 1,000; text that is no UUID is never one
 * @throws `page_token_invalid` for more
 */
export async function getLiveStates(ctx: AppsContext, texts: readonly string[]): Promise<LiveState[]> {
  if (texts.length > IDS_MAX) throw errors.page_token_invalid();
  const ids = texts.map(parseId).filter((id) => id !== undefined);
  if (ids.length === 0) return [];
  const rows = await selectLiveStates(ctx.pool, ids);
  return rows.map((row) => ({
    applicationId: row.id,
    lastSequence: BigInt(row.last_sequence),
    socketKeyFingerprint: fingerprintOf(row.socket_key_hash),
  }));
}
