import type { Application, Latchkey } from '@latchkey/client';
import type { RateLimitRetry } from '../program/rate-limit-retry.ts';
import { NEW_SETTINGS } from './plan.ts';
import type { CurrentApplication, StoredFile } from './state.ts';

/** Applications whose details are read concurrently. */
const CONCURRENCY = 4;

export interface ReadOptions {
  readonly retryRateLimited: RateLimitRetry;
  /** True if the details of an application matter. Others are given as they are created. */
  readonly isNeeded?: (application: { readonly id: string; readonly name: string }) => boolean;
}

/** Reads the applications of the account, or those that a restricted key may use, oldest first. */
export async function readState(
  client: Latchkey,
  { retryRateLimited, isNeeded = () => true }: ReadOptions,
): Promise<readonly CurrentApplication[]> {
  const listed = await retryRateLimited(() => client.applications.list());
  const state: CurrentApplication[] = listed.map(({ id, name }) => ({ id, name, settings: NEW_SETTINGS, levels: [], files: [] }));
  const queue = state.entries();
  const work = async () => {
    // The workers share the iterator, so each entry is read once.
    for (const [index, application] of queue) {
      if (isNeeded(application)) state[index] = await readDetails(client, retryRateLimited, application);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return state;
}

async function readDetails(
  client: Latchkey,
  retryRateLimited: RateLimitRetry,
  { id, name }: Pick<Application, 'id' | 'name'>,
): Promise<CurrentApplication> {
  const settings = await retryRateLimited(() => client.applications.settings(id));
  const levels = await retryRateLimited(() => client.levels.get(id));
  const files: StoredFile[] = [];
  for (let page = 1, totalPages = 1; page <= totalPages; page += 1) {
    const found = await retryRateLimited(() => client.files.list(id, { page }));
    files.push(...found.files.map((file) => ({ id: file.id, name: file.displayName, sha256: file.checksum })));
    totalPages = found.totalPages;
  }
  return { id, name, settings, levels, files };
}
