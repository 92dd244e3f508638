import { OPERATOR } from '@latchkey/kit/audit/actor';
import { recordAudit } from '@latchkey/kit/audit/audit-entry';
import { recordFiles } from '../file/audit.ts';
import { chargeMib } from '../file/charge.ts';
import { insertObjectDeletion, removeFile, subtractUsage } from '../file/file.store.ts';
import { objectKey } from '../object-store/object-store.ts';
import { deleteObjectDeletions } from '../sweep/sweep.store.ts';
import { dropAvatar, selectUnknownKeys } from './check.store.ts';
import { inspectAvatar } from './check-avatars.ts';
import type { CheckedAvatar, CheckedFile, Finding, MendOutcome } from './finding.ts';
import { inspectObject } from './inspect-object.ts';
import { recountUsage } from './usage-check.store.ts';
import type { CheckContext } from './walk.ts';

/**
 * Mends one finding, if it still holds: hours may have passed since it was made. Never throws, so that one that can't be mended does not keep the
 * others from it.
 */
export async function mendFinding(
  ctx: CheckContext,
  finding: Finding,
  skipChecksums: boolean,
): Promise<{ readonly outcome: MendOutcome; readonly err?: unknown }> {
  try {
    return { outcome: await mend(ctx, finding, skipChecksums) };
  } catch (err) {
    return { outcome: 'failed', err };
  }
}

async function mend(ctx: CheckContext, finding: Finding, skipChecksums: boolean): Promise<MendOutcome> {
  switch (finding.kind) {
    case 'object_missing':
    case 'object_damaged':
      return removeDamaged(ctx, finding.file, skipChecksums);
    case 'object_unreadable':
      throw new Error('An object that can not be read may be whole: it is left alone');
    case 'avatar_lost':
      return removeAvatar(ctx, finding.avatar, skipChecksums);
    case 'object_orphaned':
    case 'upload_unfinished':
      return removeUnknown(ctx, finding.object.key);
    case 'usage_wrong':
      await ctx.db.transaction().execute((tx) => recountUsage(tx, finding.usage.applicationId));
      return 'mended';
  }
}

async function removeDamaged(ctx: CheckContext, file: CheckedFile, skipChecksums: boolean): Promise<MendOutcome> {
  const finding = await inspectObject(ctx.store, file, { skipChecksums, onBytes: () => undefined });
  if (!finding) return 'gone';
  if (finding.kind === 'object_unreadable') throw new Error(finding.reason);
  return removeAsDeleted(ctx, file);
}

/** The same transaction as a deletion's, and then the object: where that fails, the sweeper does it later. */
async function removeAsDeleted({ db, store }: CheckContext, { applicationId, id }: CheckedFile): Promise<MendOutcome> {
  const key = objectKey(applicationId, id);
  const removed = await db.transaction().execute(async (tx) => {
    const file = await removeFile(tx, applicationId, id);
    if (file === undefined) return false;
    await subtractUsage(tx, applicationId, chargeMib(file.byteSize));
    const { accountId, displayName } = file;
    const changes = { displayName, because: 'object_lost' };
    await recordFiles(tx, OPERATOR, { accountId, applicationId, fileId: id, action: 'file.deleted', changes });
    await insertObjectDeletion(tx, key);
    return true;
  });
  if (!removed) return 'gone';
  await store.remove(key).then(
    () => deleteObjectDeletions(db, [key]),
    () => undefined,
  );
  return 'mended';
}

/** The account has no avatar from then on, until another is uploaded. */
async function removeAvatar(ctx: CheckContext, avatar: CheckedAvatar, skipChecksums: boolean): Promise<MendOutcome> {
  const finding = await inspectAvatar(ctx.store, avatar, { skipChecksums, onBytes: () => undefined });
  if (!finding) return 'gone';
  if (finding.what === 'unreadable') throw new Error('An image that can not be read may be whole: it is left alone');
  const key = objectKey(avatar.accountId, avatar.imageId);
  const dropped = await ctx.db.transaction().execute(async (tx) => {
    if (!(await dropAvatar(tx, avatar.id))) return false;
    const { accountId } = avatar;
    const changes = { because: 'object_lost' };
    await recordAudit(tx, OPERATOR, {
      accountId,
      action: 'account.avatar_removed',
      subject: { kind: 'account', id: accountId },
      changes,
    });
    await insertObjectDeletion(tx, key);
    return true;
  });
  if (!dropped) return 'gone';
  await ctx.store.remove(key).then(
    () => deleteObjectDeletions(ctx.db, [key]),
    () => undefined,
  );
  return 'mended';
}

async function removeUnknown({ db, store }: CheckContext, key: string): Promise<MendOutcome> {
  const unknown = await selectUnknownKeys(db, [key]);
  if (!unknown.has(key)) return 'gone';
  await store.remove(key);
  return 'mended';
}
