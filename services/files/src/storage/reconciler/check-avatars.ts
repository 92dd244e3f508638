import { FIRST_ID, isRecorded, selectAvatarPage } from './check.store.ts';
import { eachAtOnce } from './each-at-once.ts';
import type { CheckedAvatar, Finding } from './finding.ts';
import { inspectObject } from './inspect-object.ts';
import { retried } from './retried.ts';
import type { CheckContext, Walk } from './walk.ts';

const PAGE = 1_000;

/** As many as are looked at of files. */
const LOOKS_AT_ONCE = 4;

/** Looks at the image of every avatar. */
export async function checkAvatars(walk: Walk): Promise<void> {
  for (let after = FIRST_ID; ; ) {
    const page = await retried(() => selectAvatarPage(walk.db, after, PAGE));
    await eachAtOnce(page, LOOKS_AT_ONCE, (avatar) => checkAvatar(walk, avatar));
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = last.id;
  }
}

async function checkAvatar({ db, store, skipChecksums, counts, tell, report }: Walk, avatar: CheckedAvatar): Promise<void> {
  const onBytes = (count: number) => {
    counts.bytesRead += count;
    tell();
  };
  const finding = await inspectAvatar(store, avatar, { skipChecksums, onBytes });
  // An avatar ceases to be the account's before its image goes.
  if (finding && (await retried(() => isRecorded(db, avatar.id)))) report(finding);
  counts.avatars += 1;
  tell();
}

const WHAT = { object_missing: 'missing', object_damaged: 'damaged', object_unreadable: 'unreadable' } as const;

/** What is wrong with an avatar's image, or undefined where it is as the row says. */
export async function inspectAvatar(
  store: CheckContext['store'],
  avatar: CheckedAvatar,
  options: Parameters<typeof inspectObject>[2],
): Promise<Extract<Finding, { kind: 'avatar_lost' }> | undefined> {
  const { accountId: applicationId, imageId: id, byteSize, checksum } = avatar;
  const found = await inspectObject(store, { applicationId, id, byteSize, checksum, displayName: '' }, options);
  return found && { kind: 'avatar_lost', avatar, what: WHAT[found.kind as keyof typeof WHAT] };
}
