import type { Http } from '../http/http.ts';
import type { QueryOf } from '../http/routes.ts';
import type { CallOptions, ChangeOptions, DaysOptions } from '../options.ts';
import type { ApiKey, ApiKeyChanges, ApiKeyPage, CreatedApiKey, DailyRequests, NewApiKey } from '../types.ts';

export interface ApiKeyPageOptions extends CallOptions {
  /** From 1. */
  readonly page?: number | undefined;
  /** Text that names contain, without regard to case. */
  readonly search?: string | undefined;
  readonly sort?: QueryOf<'GET /api/v1/panel/list-api-keys'>['sort'];
}

/** Management API keys. Needs a session. */
export const createApiKeys = (http: Http) => ({
  list: (options?: CallOptions): Promise<ApiKey[]> => http.call('GET /api/v1/panel/api-keys', {}, options),

  /** A key with its entity tag, for a change that expects it. */
  async read(id: string, options?: CallOptions): Promise<{ readonly apiKey: ApiKey; readonly etag: string | undefined }> {
    const { envelope, etag } = await http.send('GET /api/v1/panel/api-keys/{id}', { path: { id } }, options);
    return { apiKey: envelope.data, etag };
  },

  /** A page of keys, searched by name and sorted. */
  async page({ page = 1, search, sort, ...options }: ApiKeyPageOptions = {}): Promise<ApiKeyPage> {
    const { envelope } = await http.send('GET /api/v1/panel/list-api-keys', { query: { page, search, sort } }, options);
    return { apiKeys: envelope.data, totalPages: envelope.totalPages };
  },

  /** Requests of a key on each day (UTC), oldest first. */
  requests: (id: string, { days, ...options }: DaysOptions = {}): Promise<DailyRequests[]> =>
    http.call('GET /api/v1/panel/api-keys/{id}/requests', { path: { id }, query: { days } }, options),

  /** Creates a key. Its `plaintextKey` is shown this once. */
  create: (key: NewApiKey, options?: CallOptions): Promise<CreatedApiKey> =>
    http.call('POST /api/v1/panel/api-keys', { body: key }, options),

  /**
   * Changes the given properties.
   *
   * @throws LatchkeyError such as `changed_meanwhile`
   */
  update: (id: string, changes: ApiKeyChanges, options?: ChangeOptions): Promise<ApiKey> =>
    http.call('PATCH /api/v1/panel/api-keys/{id}', { path: { id }, body: changes }, options),

  /**
   * Creates a key with the same rights, whose `plaintextKey` is shown once. The old key expires
   * after `overlapSeconds`, immediately unless given.
   */
  rotate: (
    id: string,
    { overlapSeconds, ...options }: CallOptions & { readonly overlapSeconds?: number | undefined } = {},
  ): Promise<CreatedApiKey> =>
    http.call('POST /api/v1/panel/api-keys/{id}/rotate', { path: { id }, body: { overlapSeconds } }, options),

  /** Revokes a key, which is rejected from the next request on. */
  revoke: (id: string, options?: CallOptions): Promise<ApiKey> =>
    http.call('POST /api/v1/panel/api-keys/{id}/revoke', { path: { id } }, options),
});
