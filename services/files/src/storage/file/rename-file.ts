import type { Acting } from '@latchkey/kit/audit/actor';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { recordFiles } from './audit.ts';
import { lockRenames, selectName, updateName } from './file.store.ts';
import { parseFileName } from './file-name.ts';
import { findFile } from './file-ref.ts';

/**
 * Gives a file another name; the one that it has succeeds.
 *
 * @throws `file_name_invalid`, `application_not_found`, `file_not_found`, `file_name_taken`
 */
export async function renameFile(
  ctx: Acting<FilesContext>,
  ref: ApplicationRef,
  fileIdText: string,
  nameText: string,
): Promise<void> {
  const name = parseFileName(nameText);
  const { accountId, applicationId, fileId } = await findFile(ctx, ref, fileIdText);
  await ctx.db.transaction().execute(async (tx) => {
    await lockRenames(tx, applicationId);
    const previousName = await selectName(tx, applicationId, fileId);
    const found = await updateName(tx, applicationId, fileId, name).catch((err: unknown) => {
      throw isUniqueViolation(err, 'file_name') ? errors.file_name_taken() : err;
    });
    if (!found || previousName === undefined) throw errors.file_not_found();
    if (name === previousName) return;
    const changes = { displayName: name, previous: previousName };
    await recordFiles(tx, ctx.origin, { accountId, applicationId, fileId, action: 'file.renamed', changes });
  });
}
