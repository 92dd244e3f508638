import { isUniqueViolation } from '@latchkey/kit/database/database';
import type { ApplicationRef } from '../application/owned-application.ts';
import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { lockRenames, updateName } from './file.store.ts';
import { parseFileName } from './file-name.ts';
import { findFile } from './file-ref.ts';

/**
 * Gives a file another name; the one that it has succeeds.
 *
 * @throws `file_name_invalid`, `application_not_found`, `file_not_found`, `file_name_taken`
 */
export async function renameFile(ctx: FilesContext, ref: ApplicationRef, fileIdText: string, nameText: string): Promise<void> {
  const name = parseFileName(nameText);
  const { applicationId, fileId } = await findFile(ctx, ref, fileIdText);
  await ctx.db.transaction().execute(async (tx) => {
    await lockRenames(tx, applicationId);
    const found = await updateName(tx, applicationId, fileId, name).catch((err: unknown) => {
      throw isUniqueViolation(err, 'file_name') ? errors.file_name_taken() : err;
    });
    if (!found) throw errors.file_not_found();
  });
}
