import { parseId } from '@latchkey/kit/id';
import type { FilesContext } from '../../context.ts';
import { selectUsages } from '../upload/usage.store.ts';
import { sumUsage, type Usage } from '../upload/usage.ts';

/**
 * What the files of an account add up to, as an upload would count them: those of deleted applications that are not removed yet do not count.
 *
 * @param requestId id of the request that asks; empty for none
 */
export async function getStorageUsage(ctx: FilesContext, accountText: string, requestId: string): Promise<Usage> {
  const accountId = parseId(accountText);
  const usages = accountId ? await selectUsages(ctx.db, accountId) : [];
  if (!accountId || usages.length === 0) return sumUsage([]);
  const applicationIds = usages.map((usage) => usage.applicationId);
  const alive = await ctx.findOwned(accountId, applicationIds, requestId);
  return sumUsage(usages.filter((usage) => alive.has(usage.applicationId)));
}
