import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { type ApplicationRef, parseRef, whileOwned } from '../application/owned-application.ts';
import { isNameTaken } from './file.store.ts';
import { parseFileName } from './file-name.ts';

/** Resolves when the name is free. Throws `file_name_invalid`, `application_not_found`, `file_name_taken`. */
export async function checkFileName(ctx: FilesContext, given: ApplicationRef, nameText: string): Promise<void> {
  const name = parseFileName(nameText);
  const ref = parseRef(given);
  const taken = await whileOwned(ctx.findOwned, ref, () => isNameTaken(ctx.db, ref.applicationId, name));
  if (taken) throw errors.file_name_taken();
}
