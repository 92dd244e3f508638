import { parseId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import * as rows from './resumable-upload.store.ts';

export type ResumableUpload = rows.ResumableUpload;

/** An upload, finished or not. Throws `upload_not_found`, `upload_expired`. */
export async function findUpload(ctx: FilesContext, accountText: string, idText: string): Promise<rows.ResumableUpload> {
  const [accountId, id] = [parseId(accountText), parseId(idText)];
  const upload = accountId && id ? await rows.selectUpload(ctx.db, accountId, id) : undefined;
  if (!upload) throw errors.upload_not_found();
  if (upload.state === 'ended' || upload.isExpired) throw errors.upload_expired();
  return upload;
}

/** The unfinished uploads of an account, oldest first. */
export async function listUploads(ctx: FilesContext, accountText: string): Promise<rows.ResumableUpload[]> {
  const accountId = parseId(accountText);
  return accountId ? rows.selectUnfinished(ctx.db, accountId) : [];
}
