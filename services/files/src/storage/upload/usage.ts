import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { chargeMib, MIB } from '../file/charge.ts';
import type { ApplicationUsage } from './usage.store.ts';

/** What an account's files add up to. */
export interface Usage {
  readonly fileCount: number;
  readonly chargedMib: number;
}

/** The account and the request that asks, and what its applications use. */
export interface UsageQuestion {
  readonly accountId: string;
  readonly requestId: string;
  readonly usages: readonly ApplicationUsage[];
}

/** Whether another file of so many bytes would fit. */
export function fits(limits: FilesContext['limits'], usage: Usage, byteSize: number): boolean {
  return usage.fileCount < limits.fileCountMax && usage.chargedMib + chargeMib(byteSize) <= limits.allowanceMib;
}

/**
 * Applications of the account that have files here and are deleted, so that their files count no more (specification 4.2, decisions 7). They
 * matter only where a file would not fit otherwise, and are asked for only then.
 */
export async function findDeleted(ctx: FilesContext, question: UsageQuestion, byteSize: number): Promise<ReadonlySet<string>> {
  const { accountId, requestId, usages } = question;
  if (fits(ctx.limits, sumUsage(usages), byteSize)) return new Set();
  const ids = usages.map((usage) => usage.applicationId);
  const alive = await ctx.findOwned(accountId, ids, requestId);
  return new Set(ids.filter((id) => !alive.has(id)));
}

export function sumUsage(usages: readonly ApplicationUsage[]): Usage {
  const sum = { fileCount: 0, chargedMib: 0 };
  for (const usage of usages) {
    sum.fileCount += usage.fileCount;
    sum.chargedMib += usage.chargedMib;
  }
  return sum;
}

/** Throws `allowance_exceeded` or `file_count_exceeded` where a file of so many bytes does not fit. */
export function checkFits(limits: FilesContext['limits'], usage: Usage, byteSize: number): void {
  if (fits(limits, usage, byteSize)) return;
  throw usage.fileCount < limits.fileCountMax ? errors.allowance_exceeded() : errors.file_count_exceeded();
}

/** Most bytes that a file may have: a MiB that is begun is not charged (specification 8). */
export function allowedBytes(limits: FilesContext['limits'], usage: Usage): number {
  return (limits.allowanceMib - usage.chargedMib + 1) * MIB - 1;
}
