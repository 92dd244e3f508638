import type { FilesContext } from '../../context.ts';
import { type ApplicationRef, parseRef, whileOwned } from '../application/owned-application.ts';
import { type FilesMetadata, selectMetadata } from './file.store.ts';

/** What can be said of all files of an application. Throws `application_not_found`. */
export async function getFilesMetadata(ctx: FilesContext, given: ApplicationRef): Promise<FilesMetadata> {
  const ref = parseRef(given);
  return whileOwned(ctx.findOwned, ref, () => selectMetadata(ctx.pool, ref.applicationId));
}
