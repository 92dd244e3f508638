import type { Application, Latchkey } from '@latchkey/client';
import type { RateLimitRetry } from '../program/rate-limit-retry.ts';
import { NEW_SETTINGS } from './plan.ts';
import type { CurrentApplication, StoredFile } from './state.ts';

const CONCURRENCY = 4;

export interface Etags {
  readonly settings: string | undefined;
  readonly levels: string | undefined;
}

type Listed = Pick<Application, 'id' | 'name'>;

export interface ReadOptions {
  readonly retryRateLimited: RateLimitRetry;
  /** Gets the entity tags of those that are read, by id. */
  readonly etags?: Map<string, Etags>;
  /** True if the details of an application matter. Others are given as they are created. */
  readonly isNeeded?: (application: Listed) => boolean;
  readonly needsReleases?: (application: Listed) => boolean;
}

/** Reads the applications of the account, or those that a restricted key may use, oldest first. */
export async function readState(
  client: Latchkey,
  { retryRateLimited, etags, isNeeded = () => true, needsReleases = () => false }: ReadOptions,
): Promise<readonly CurrentApplication[]> {
  const listed = await retryRateLimited(() => client.applications.list());
  const state: CurrentApplication[] = listed.map(({ id, name }) => ({ id, name, settings: NEW_SETTINGS, levels: [], files: [] }));
  const queue = state.entries();
  const work = async () => {
    // The workers share the iterator, so each entry is read once.
    for (const [index, application] of queue) {
      if (!isNeeded(application)) continue;
      const details = await readDetails(client, retryRateLimited, application, etags);
      const releases = needsReleases(application) && (await retryRateLimited(() => client.releases.list(application.id)));
      state[index] = { ...details, ...(releases && { releases }) };
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return state;
}

async function readDetails(
  client: Latchkey,
  retryRateLimited: RateLimitRetry,
  { id, name }: Listed,
  etags: Map<string, Etags> | undefined,
): Promise<CurrentApplication> {
  const { settings, etag } = await retryRateLimited(() => client.applications.readSettings(id));
  const { levels, etag: levelsEtag } = await retryRateLimited(() => client.levels.read(id));
  etags?.set(id, { settings: etag, levels: levelsEtag });
  const files: StoredFile[] = [];
  for (let page = 1, totalPages = 1; page <= totalPages; page += 1) {
    const found = await retryRateLimited(() => client.files.list(id, { page }));
    files.push(...found.files.map((file) => ({ id: file.id, name: file.displayName, sha256: file.checksum })));
    totalPages = found.totalPages;
  }
  return { id, name, settings, levels, files };
}
