import type { Origin } from '@latchkey/audit/actor';
import { runStatement } from '@latchkey/audit/transaction';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { newId, parseId } from '@latchkey/kit/validation/id';
import { errors } from '../errors.ts';
import { removeObjectsSoon } from '../storage/object-deletion/object-deletion.ts';
import { insertRemoval } from './avatar.store.ts';
import { type AvatarContext, recordAvatar } from './record-avatar.ts';

/**
 * Takes the avatar from an account, and that of every upload begun before; without one it succeeds
 * too. The removal is stored first: if identity fails, the sweeper completes it. Throws
 * `avatar_not_found` for text other than a UUID, and `outcome_unknown` where the sweeper has to.
 */
export async function removeAvatar(ctx: AvatarContext, accountText: string, origin: Origin): Promise<void> {
  const accountId = parseId(accountText);
  if (!accountId) throw errors.avatar_not_found();
  const removal = await runStatement(ctx.db, (db) => insertRemoval(db, { id: newId(), accountId, origin }));
  const keys = await recordAvatar(ctx, removal).catch((cause: unknown) => {
    throw Object.assign(commonErrors.outcome_unknown(), { cause });
  });
  await removeObjectsSoon(ctx, keys);
}
