import { LatchkeyError } from '../errors.ts';
import type { EventPage } from '../events/events.ts';
import type { Http } from '../http/http.ts';
import type { InputOf, QueryOf } from '../http/routes.ts';
import type { CallOptions, ChangeOptions, DaysOptions } from '../options.ts';
import type { Application, ApplicationChanges, ApplicationPage, ApplicationSettings, DailyUsage } from '../types.ts';

type SettingChange = InputOf<'PATCH /api/v1/panel/update-application-settings'>['body'];

export interface ListPageOptions extends CallOptions {
  /** Page number, from 1. A page has 50 applications. */
  readonly page?: number | undefined;
  /** Text that the name contains, without regard to case. */
  readonly search?: string | undefined;
  readonly sort?: QueryOf<'GET /api/v1/panel/list-applications'>['sort'];
}

export interface PullEventsOptions extends CallOptions {
  /** Position: `next` of the page before, `<epoch>:<sequence>`. */
  readonly after?: string | undefined;
  /** Longest wait for an event, 0 to 25 seconds. Without it, the page may be empty. */
  readonly waitSeconds?: number | undefined;
}

const APPLICATION_ID = /[?&]applicationId=([^&]+)/;

export const createApplications = (http: Http) => ({
  /**
   * All applications of the account, oldest first; with a restricted key, those that it may use.
   */
  list: (options?: CallOptions): Promise<Application[]> => http.call('GET /api/v1/panel/get-applications', {}, options),

  /** A page of applications with status, version, files and storage, without keys. */
  async page({ page = 1, search, sort, ...options }: ListPageOptions = {}): Promise<ApplicationPage> {
    const { envelope } = await http.send('GET /api/v1/panel/list-applications', { query: { page, search, sort } }, options);
    return { applications: envelope.data, totalPages: envelope.totalPages };
  },

  /** Creates an application, which is online and has version `1.0` and both runtime keys. */
  async create(application: { readonly name: string }, options?: CallOptions): Promise<{ readonly id: string }> {
    const { location } = await http.send('POST /api/v1/panel/create-application', { body: application }, options);
    const [, id] = APPLICATION_ID.exec(location ?? '') ?? [];
    if (id !== undefined) return { id };
    const message = 'The response does not name the new application. Does a proxy remove the header Location?';
    throw new LatchkeyError(message, { code: 'unexpected_response', status: 200 });
  },

  /** Status, version and license requirements. */
  settings: (applicationId: string, options?: CallOptions): Promise<ApplicationSettings> =>
    http.call('GET /api/v1/panel/get-application-settings', { query: { applicationId } }, options),

  /** The settings with their entity tag, for a change that expects them. */
  async readSettings(
    applicationId: string,
    options?: CallOptions,
  ): Promise<{ readonly settings: ApplicationSettings; readonly etag: string | undefined }> {
    const target = 'GET /api/v1/panel/get-application-settings';
    const { envelope, etag } = await http.send(target, { query: { applicationId } }, options);
    return { settings: envelope.data, etag };
  },

  /**
   * Sets the given settings, one request each and in that order: if one fails, those before it are
   * set. Live clients are notified of a new `status` and a new `version`.
   *
   * @param options `ifMatch` holds for the first of them
   * @throws LatchkeyError such as `changed_meanwhile`
   */
  update: (applicationId: string, changes: ApplicationChanges, options?: ChangeOptions): Promise<void> =>
    updateSettings(http, applicationId, changes, options),

  /** Sets the status to `paused`. */
  pause: (applicationId: string, options?: ChangeOptions): Promise<void> =>
    updateSettings(http, applicationId, { status: 'paused' }, options),

  /** Sets the status to `online`. */
  resume: (applicationId: string, options?: ChangeOptions): Promise<void> =>
    updateSettings(http, applicationId, { status: 'online' }, options),

  /**
   * The stored live events after a position, oldest first, up to 100; without one, from the oldest.
   * Pass `next` on as `after`.
   */
  async pullEvents(applicationId: string, { after, waitSeconds, ...options }: PullEventsOptions = {}): Promise<EventPage> {
    const query = { applicationId, after, waitSeconds };
    const page: unknown = await http.call('GET /api/v1/panel/events', { query }, options);
    // The document describes the types of live events elsewhere.
    return page as EventPage;
  },

  /** Events, downloads, uploads and the most live clients of each day (UTC), oldest first. */
  usage: (applicationId: string, { days, ...options }: DaysOptions = {}): Promise<DailyUsage[]> =>
    http.call('GET /api/v1/panel/get-usage', { query: { applicationId, days } }, options),

  /** Live clients of a few seconds ago; null while their number is not known. */
  async liveClients(applicationId: string, options?: CallOptions): Promise<number | null> {
    return (await http.call('GET /api/v1/panel/get-live-clients', { query: { applicationId } }, options)).clients;
  },

  /**
   * Deletes an application with its files and keys. Live clients are notified and disconnected.
   *
   * @param options `code` of the second factor: with a session of an account that has one
   */
  delete: (
    applicationId: string,
    { code = '', ...options }: CallOptions & { readonly code?: string | undefined } = {},
  ): Promise<void> => http.call('DELETE /api/v1/panel/delete-application', { body: { applicationId, code } }, options),
});

async function updateSettings(
  http: Http,
  applicationId: string,
  changes: ApplicationChanges,
  { ifMatch, ...options }: ChangeOptions = {},
): Promise<void> {
  let expected = ifMatch;
  for (const [field, value] of Object.entries(changes) as Array<[keyof ApplicationSettings, string | boolean | undefined]>) {
    if (value === undefined) continue;
    const input = { query: { applicationId }, body: { field, value } as SettingChange };
    const key = options.idempotencyKey;
    const own = { ...options, ifMatch: expected, idempotencyKey: key && `${key} ${field}` };
    await http.call('PATCH /api/v1/panel/update-application-settings', input, own);
    expected = undefined;
  }
}

/** License levels of applications. */
export const createLevels = (http: Http) => ({
  /** The names of the levels, in their order. */
  get: (applicationId: string, options?: CallOptions): Promise<string[]> =>
    http.call('GET /api/v1/panel/get-application-license-levels', { query: { applicationId } }, options),

  /** The levels with their entity tag, for a change that expects them. */
  async read(
    applicationId: string,
    options?: CallOptions,
  ): Promise<{ readonly levels: string[]; readonly etag: string | undefined }> {
    const target = 'GET /api/v1/panel/get-application-license-levels';
    const { envelope, etag } = await http.send(target, { query: { applicationId } }, options);
    return { levels: envelope.data, etag };
  },

  /**
   * Replaces all levels: one or more names.
   *
   * @throws LatchkeyError such as `changed_meanwhile`
   */
  async set(applicationId: string, levels: readonly string[], options?: ChangeOptions): Promise<void> {
    const input = { query: { applicationId }, body: { levels: [...levels] } };
    await http.call('POST /api/v1/panel/create-application-license-levels', input, options);
  },
});

export interface RotateRuntimeKeyOptions extends CallOptions {
  /** Seconds for which the old key is accepted too, 0 to 604,800; 0 by default. */
  readonly overlapSeconds?: number | undefined;
  /** True if the overlap of an earlier rotation may end now. */
  readonly endPrevious?: boolean | undefined;
}

/** Runtime keys of applications. `applications.list` has them. */
export const createRuntimeKeys = (http: Http) => ({
  /**
   * Replaces a runtime key: the old one is rejected from then on, or after an overlap. Two an hour
   * for each application. Throws `overlap_active` during an overlap, unless it has `endPrevious`.
   */
  async rotate(
    applicationId: string,
    key: 'socket' | 'http',
    { overlapSeconds, endPrevious, ...options }: RotateRuntimeKeyOptions = {},
  ): Promise<void> {
    const input = { query: { applicationId }, body: { type: `${key}Key` as const, overlapSeconds, endPrevious } };
    await http.call('PATCH /api/v1/panel/update-api-keys', input, options);
  },

  /** Ends the overlap of a rotation: the old key is rejected from then on. */
  async endOverlap(applicationId: string, key: 'socket' | 'http', options?: CallOptions): Promise<void> {
    const input = { query: { applicationId }, body: { type: `${key}Key` as const } };
    await http.call('POST /api/v1/panel/end-key-overlap', input, options);
  },
});
