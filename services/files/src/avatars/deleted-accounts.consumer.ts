import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import type { Sweep } from '@latchkey/kit/sweeper/sweeper';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { FilesContext } from '../context.ts';
import { endAvatarsOf } from './avatar.store.ts';

/** For clocks that differ, and for deletions that took long to commit. */
const OVERLAP_MS = 5 * 60_000;

/**
 * Creates a sweep that removes the avatars of deleted accounts. The first run covers all deletions
 * that identity lists, and each later one starts where the last complete one did, less an overlap.
 */
export function createDeletedAccountsSweep(
  { db, clock, logger }: Pick<FilesContext, 'db' | 'clock' | 'logger'>,
  identityTransport: Transport,
  onObjectsToRemove: () => void,
): Sweep {
  const identity = createClient(AccountService, identityTransport);
  let completedAt: number | undefined;
  return async (signal) => {
    const now = clock().getTime();
    let since = completedAt === undefined ? undefined : timestampFromDate(new Date(completedAt - OVERLAP_MS));
    let afterAccountId = '';
    for (;;) {
      const request = { ...(since && { deletedSince: since }), afterAccountId };
      const { accounts } = await identity.listDeletedAccounts(request, { timeoutMs: DEADLINES_MS.listDeletions, signal });
      const last = accounts.at(-1);
      if (!last || signal.aborted) break;
      const avatarCount = await endAvatarsOf(
        db,
        accounts.map(({ accountId }) => accountId),
      );
      if (avatarCount > 0) logger.info({ avatarCount }, 'avatars of deleted accounts ended');
      if (avatarCount > 0) onObjectsToRemove();
      [since, afterAccountId] = [last.deletedAt, last.accountId];
    }
    if (!signal.aborted) completedAt = now;
  };
}
