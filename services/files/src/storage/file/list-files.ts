import { PART_OF_FILE_NAME } from '@latchkey/contract/file-name';
import { FILES_PAGE_SIZE } from '@latchkey/contract/page-size';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../proto-errors.ts';
import { type ApplicationRef, readOwned } from '../application/owned-application.ts';
import { type FilePage, type Slice, selectMatches, selectPage } from './file-page.store.ts';

/** More files than any application has: larger offsets are past the end too. */
const OFFSET_MAX = 1_000_000_000_000n;

/**
 * A page of an application's files, newest first, and the number of matches (specification 4.2).
 * Throws `page_invalid`, `application_not_found`.
 */
export async function listFiles(
  ctx: FilesContext,
  ref: ApplicationRef,
  request: { readonly pageSize: number; readonly page: bigint; readonly nameContains: string },
): Promise<FilePage> {
  const slice = toSlice(request.pageSize, request.page);
  return readOwned(ctx.findOwned, ref, () => select(ctx, ref.applicationId, slice, request.nameContains));
}

async function select(ctx: FilesContext, applicationId: string, slice: Slice, nameContains: string): Promise<FilePage> {
  if (nameContains === '') return selectPage(ctx.pool, applicationId, slice);
  if (!PART_OF_FILE_NAME.test(nameContains)) return { rows: [], total: 0 };
  return selectMatches(ctx.pool, applicationId, nameContains.toLowerCase(), slice);
}

/** Zeros are defaults. */
function toSlice(pageSize: number, page: bigint): Slice {
  if (pageSize < 0 || pageSize > FILES_PAGE_SIZE.max || page < 0n) throw errors.page_invalid();
  const limit = pageSize || FILES_PAGE_SIZE.default;
  const offset = ((page || 1n) - 1n) * BigInt(limit);
  return { limit, offset: Number(offset > OFFSET_MAX ? OFFSET_MAX : offset) };
}
