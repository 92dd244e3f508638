import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { objectKey } from '../object-store/object-store.ts';
import { countDownloadUrl, selectDownloadable } from './file.store.ts';
import { findFile } from './file-ref.ts';

/** An address of a file's bytes, and its end. */
export interface DownloadUrl {
  readonly url: string;
  readonly expiresAt: Date;
}

const LIFETIME_S = 300;
const LIFETIME_S_MAX = 3_600;

/**
 * Makes a URL to a file's bytes and counts it (decisions 11). It is the store's own where the store serves its objects, else one of this service.
 *
 * @param lifetimeSeconds how long it is good for, 1 to 3,600; 0 means 300
 * @throws `lifetime_invalid`, `application_not_found`, `file_not_found`
 */
export async function createDownloadUrl(
  ctx: FilesContext,
  ref: ApplicationRef,
  fileIdText: string,
  lifetimeSeconds: number,
): Promise<DownloadUrl> {
  if (lifetimeSeconds < 0 || lifetimeSeconds > LIFETIME_S_MAX) throw errors.lifetime_invalid();
  const lifetime = lifetimeSeconds || LIFETIME_S;
  const { applicationId, fileId } = await findFile(ctx, ref, fileIdText);
  const file = await selectDownloadable(ctx.db, applicationId, fileId);
  if (!file) throw errors.file_not_found();
  const now = ctx.clock();
  const expiresAt = new Date(now.getTime() + lifetime * 1_000);
  const description = { fileName: file.display_name, contentType: file.content_type, lifetimeSeconds: lifetime };
  const storeUrl = await ctx.store.createDownloadUrl(objectKey(applicationId, fileId), description);
  const url = storeUrl ?? ctx.downloadUrls.create(fileId, expiresAt);
  // Counted last: a URL that could not be made was never answered.
  if (!(await countDownloadUrl(ctx.db, fileId, now))) throw errors.file_not_found();
  return { url, expiresAt };
}
