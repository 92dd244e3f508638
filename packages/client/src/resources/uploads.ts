import type { Http } from '../http/http.ts';
import type { CallOptions } from '../options.ts';
import type { Upload } from '../types.ts';

/** Unfinished uploads. `files.upload` continues them. */
export const createUploads = (http: Http) => ({
  /** All of the account, oldest first; those of its applications for a restricted key. */
  list: (options?: CallOptions): Promise<Upload[]> => http.call('GET /api/v1/panel/uploads', {}, options),

  /** Ends an upload, and removes what it stored and reserved. A finished one keeps its file. */
  async end(id: string, options?: CallOptions): Promise<void> {
    await http.call('DELETE /api/v1/panel/uploads/{id}', { path: { id } }, options);
  },
});
