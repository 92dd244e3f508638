import type { Http } from '../http/http.ts';
import type { QueryOf } from '../http/routes.ts';
import type { CallOptions } from '../options.ts';
import type { AuditEntry, AuditPage } from '../types.ts';

const PAGE_SIZE_MAX = 100;

/** `applicationId` or `action` selects entries; `limit` and `cursor` select a page. */
export type AuditQuery = QueryOf<'GET /api/v1/panel/audit-log'>;

/** The audit log of the account. Needs a session. */
export const createAuditLog = (http: Http) => ({
  /** A page of entries, newest first. Its `nextCursor` selects the next one; null on the last. */
  list: (options?: AuditQuery & CallOptions): Promise<AuditPage> => listEntries(http, options),

  /** All entries, newest first. Reads the pages as they are needed. */
  async *iterate(options: Omit<AuditQuery, 'limit' | 'cursor'> & CallOptions = {}): AsyncGenerator<AuditEntry, void> {
    let cursor: string | null = null;
    do {
      const page: AuditPage = await listEntries(http, { ...options, limit: PAGE_SIZE_MAX, ...(cursor !== null && { cursor }) });
      yield* page.entries;
      cursor = page.nextCursor;
    } while (cursor !== null);
  },
});

const listEntries = (http: Http, { signal, ...query }: AuditQuery & CallOptions = {}): Promise<AuditPage> =>
  http.call('GET /api/v1/panel/audit-log', { query }, { signal });
