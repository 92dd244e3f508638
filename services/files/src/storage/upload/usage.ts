import { parseId, toId } from '@latchkey/kit/validation/id';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../proto-errors.ts';
import { type ApplicationUsage, selectCharges, selectUsages } from './usage.store.ts';

export const MIB = 1024 * 1024;

type Usage = Omit<ApplicationUsage, 'applicationId'>;

/** Charge of a file: its size in whole MiB, rounded down, at least one. */
export function chargeMib(byteSize: number): number {
  return Math.max(1, Math.floor(byteSize / MIB));
}

/** The usage of applications of an account, or of all that have files. Other ids are left out. */
export const getUsageOf = (ctx: FilesContext, accountText: string, applicationIds: readonly string[]) =>
  selectUsages(ctx.db, toId(accountText), applicationIds.map(toId));

/**
 * The usage of an account as an upload counts it: with what unfinished uploads reserve, without
 * files of deleted applications.
 */
export async function getStorageUsage(ctx: FilesContext, accountText: string, requestId: string): Promise<Usage> {
  const accountId = parseId(accountText);
  // The public description of uploads asks for the limits only.
  if (!accountId) return sumUsage([]);
  const usages = await selectCharges(ctx.db, accountId);
  return usages.length === 0 ? sumUsage([]) : sumUsage(usages, await findDeleted(ctx, { accountId, requestId, usages }));
}

export function sumUsage(usages: readonly ApplicationUsage[], deleted: ReadonlySet<string> = new Set()): Usage {
  const counted = usages.filter(({ applicationId }) => !deleted.has(applicationId));
  return {
    fileCount: counted.reduce((sum, { fileCount }) => sum + fileCount, 0),
    chargedMib: counted.reduce((sum, { chargedMib }) => sum + chargedMib, 0),
  };
}

/**
 * Applications that are deleted, so that their files no longer count (specification 3).
 * If a size is given, apps is asked only when a file of that size does not fit otherwise.
 */
export async function findDeleted(
  { findOwned, limits }: Pick<FilesContext, 'findOwned' | 'limits'>,
  { accountId, requestId, usages }: { accountId: string; requestId: string; usages: readonly ApplicationUsage[] },
  byteSize?: number,
  replacedMib = 0,
): Promise<ReadonlySet<string>> {
  if (byteSize !== undefined && fits(limits, sumUsage(usages), byteSize, replacedMib)) return new Set();
  const ids = usages.map(({ applicationId }) => applicationId);
  const owned = await findOwned(accountId, ids, requestId);
  return new Set(ids.filter((id) => !owned.has(id)));
}

type Limits = FilesContext['limits'];

/** @param replacedMib charge of the file that this one replaces; 0 without one */
function fits(limits: Limits, usage: Usage, byteSize: number, replacedMib: number): boolean {
  return isCountFree(limits, usage, replacedMib) && chargeMib(byteSize) <= freeMib(limits, usage, replacedMib);
}

const isCountFree = ({ fileCountMax }: Limits, { fileCount }: Usage, replacedMib: number) =>
  replacedMib > 0 || fileCount < fileCountMax;

/**
 * The replaced file's own charge is free even where the account exceeds a limit that was lowered.
 */
const freeMib = ({ allowanceMib }: Limits, { chargedMib }: Usage, replacedMib: number) =>
  replacedMib + Math.max(0, allowanceMib - chargedMib);

/** Throws as {@link checkFits}, and `file_empty` before it, `file_too_large` after it. */
export function checkSize(limits: Limits, usage: Usage, byteSize: number, replacedMib: number): void {
  if (byteSize === 0) throw errors.file_empty();
  checkFits(limits, usage, Math.min(byteSize, limits.byteSizeMax), replacedMib);
  if (byteSize > limits.byteSizeMax) throw errors.file_too_large();
}

/** Throws `allowance_exceeded` or `file_count_exceeded` where a file of this size does not fit. */
export function checkFits(limits: Limits, usage: Usage, byteSize: number, replacedMib: number): void {
  if (fits(limits, usage, byteSize, replacedMib)) return;
  throw isCountFree(limits, usage, replacedMib) ? errors.allowance_exceeded() : errors.file_count_exceeded();
}

/**
 * Size of the largest file that fits, if any does. {@link chargeMib} rounds down, so this is one
 * byte less than what is left plus 1 MiB.
 */
export function allowedBytes(limits: Limits, usage: Usage, replacedMib: number): number {
  return (freeMib(limits, usage, replacedMib) + 1) * MIB - 1;
}
