import { parseId } from '@latchkey/kit/id';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { type ApplicationRef, parseRef } from '../application/owned-application.ts';

/** Names a file of an application in canonical form. */
export interface FileRef extends ApplicationRef {
  readonly fileId: string;
}

/**
 * The file that a caller named, once its application is known to be the account's. The file itself may not be there.
 *
 * @throws `application_not_found`, then `file_not_found` for text that is no UUID and so names nothing
 */
export async function findFile(ctx: FilesContext, ref: ApplicationRef, fileIdText: string): Promise<FileRef> {
  const application = parseRef(ref);
  const { accountId, applicationId, requestId } = application;
  const owned = await ctx.findOwned(accountId, [applicationId], requestId);
  if (!owned.has(applicationId)) throw errors.application_not_found();
  const fileId = parseId(fileIdText);
  if (!fileId) throw errors.file_not_found();
  return { ...application, fileId };
}
