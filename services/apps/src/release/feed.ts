import { runTransaction } from '@latchkey/audit/transaction';
import { CHANNEL } from '@latchkey/contract/release';
import { readIdToken } from '@latchkey/kit/crypto/id-token';
import { parseId } from '@latchkey/kit/validation/id';
import { isStorable } from '@latchkey/kit/validation/text';
import type { DetachFileRequest, GetFeedRequest, ResolveDownloadRequest } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { findKeyHolder } from '../runtime-key/runtime-key.ts';
import * as store from './release.store.ts';

/**
 * A channel as updaters see it, its releases in JSON. A key must be one of the application; without
 * a key, the application must have public updates.
 *
 * @throws `feed_key_invalid`, `feed_not_found`
 */
export async function getFeed(ctx: AppsContext, request: GetFeedRequest) {
  const { channel, httpKey } = request;
  const applicationId = parseId(request.applicationId);
  const feed = applicationId && CHANNEL.test(channel) ? await ctx.reads.selectFeed(applicationId, channel) : undefined;
  const hash = httpKey === undefined ? undefined : ctx.vault.hash('httpKey', httpKey);
  if (httpKey === undefined ? !feed?.public_updates : !hash) throw errors.feed_key_invalid();
  if (hash && !feed?.http_key_hash.equals(hash)) {
    const holder = await findKeyHolder(ctx, 'httpKey', hash);
    if (!holder) throw errors.feed_key_invalid();
    if (holder.id !== applicationId) throw errors.feed_not_found();
  }
  if (!feed) throw errors.feed_not_found();
  return feed;
}

/** The file of a URL of a feed, while a release is published with it. Throws `feed_not_found`. */
export async function resolveDownload(ctx: AppsContext, { token, ...request }: ResolveDownloadRequest) {
  const applicationId = parseId(request.applicationId);
  const fileId = applicationId && readIdToken(ctx.downloadKey, token, ctx.clock(), applicationId);
  const isNamed = [request.channel, request.name].every(isStorable);
  const published = fileId && isNamed && { ...request, applicationId, fileId };
  const accountId = published && (await store.selectOwnerOfPublished(ctx.db, published));
  if (!accountId) throw errors.feed_not_found();
  return { accountId, fileId };
}

/**
 * Takes a file that is about to be deleted out of the releases that are not published; a renamed or
 * replaced one stays. Its row is locked by the files service, and the application here, so that no
 * publication comes between.
 *
 * @returns whether a published release needs the file; nothing was changed then
 */
export async function detachFile(ctx: AppsContext, file: DetachFileRequest) {
  const [applicationId, fileId] = [parseId(file.applicationId), parseId(file.fileId)];
  if (!applicationId || !fileId) return { isNeeded: false };
  if ((await store.selectStatesOfFile(ctx.db, applicationId, fileId)).length === 0) return { isNeeded: false };
  return runTransaction(ctx.db, async (tx) => {
    await store.lockApplicationRow(tx, applicationId);
    const states = await store.selectStatesOfFile(tx, applicationId, fileId);
    if (states.includes('published')) return { isNeeded: true };
    if (!file.onlyCheck) await store.deleteArtifactsOfFile(tx, applicationId, fileId);
    else if (file.isReplaced) await store.renewRevisions(tx, applicationId, fileId);
    return { isNeeded: false };
  });
}
