import type { Http } from '../http/http.ts';
import type { CallOptions } from '../options.ts';
import type { NewRelease, Release, ReleaseChanges, ReleaseSettings } from '../types.ts';

/** Releases of applications, which updaters read as feeds. */
export const createReleases = (http: Http) => ({
  /** The releases of an application, newest first. */
  list: (applicationId: string, options?: CallOptions): Promise<Release[]> =>
    http.call('GET /api/v1/panel/releases', { query: { applicationId } }, options),

  get: (id: string, options?: CallOptions): Promise<Release> =>
    http.call('GET /api/v1/panel/releases/{id}', { path: { id } }, options),

  /** Creates a draft. */
  create: (applicationId: string, release: NewRelease, options?: CallOptions): Promise<Release> =>
    http.call('POST /api/v1/panel/releases', { query: { applicationId }, body: release }, options),

  /** Changes the given properties of a draft. */
  update: (id: string, changes: ReleaseChanges, options?: CallOptions): Promise<Release> =>
    http.call('PATCH /api/v1/panel/releases/{id}', { path: { id }, body: changes }, options),

  /** Deletes a draft. */
  delete: (id: string, options?: CallOptions): Promise<void> =>
    http.call('DELETE /api/v1/panel/releases/{id}', { path: { id } }, options),

  /** Publishes a draft, to a share of the clients if `rolloutPercent` is set. */
  publish: (
    id: string,
    { rolloutPercent, ...options }: CallOptions & { readonly rolloutPercent?: number | undefined } = {},
  ): Promise<Release> =>
    http.call('POST /api/v1/panel/releases/{id}/publish', { path: { id }, body: { rolloutPercent } }, options),

  /** Withdraws a release from updaters for ever. The audit log shows the `reason`. */
  yank: (id: string, { reason, ...options }: CallOptions & { readonly reason?: string | undefined } = {}): Promise<Release> =>
    http.call('POST /api/v1/panel/releases/{id}/yank', { path: { id }, body: { reason } }, options),

  /** Sets the share of the clients that are offered a published release, 0 to 100. */
  setRollout: (id: string, rolloutPercent: number, options?: CallOptions): Promise<Release> =>
    http.call('POST /api/v1/panel/releases/{id}/rollout', { path: { id }, body: { rolloutPercent } }, options),

  /** The signing keys of an application, and whether its feeds need no key. */
  settings: (applicationId: string, options?: CallOptions): Promise<ReleaseSettings> =>
    http.call('GET /api/v1/panel/release-settings', { query: { applicationId } }, options),

  updateSettings: (applicationId: string, changes: Partial<ReleaseSettings>, options?: CallOptions): Promise<ReleaseSettings> =>
    http.call('PATCH /api/v1/panel/release-settings', { query: { applicationId }, body: changes }, options),
});
