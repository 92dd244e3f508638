import type { Scope } from '@latchkey/contract/scopes';
import type { Api, SendOptions } from './api.ts';
import { unique } from './caller.ts';
import { findFileId, upload } from './files.ts';

/** A route of the REST interface, with a request that is valid. */
export interface RouteCase {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Scope that a key needs; session-only routes have none. */
  readonly scope?: Scope;
  /** Part of the request that names the application, if any. */
  readonly names?: 'query' | 'body';
  request(applicationId: string): SendOptions;
  /** Creates what else the request has to name, for one that succeeds. */
  prepare?(api: Api, applicationId: string): Promise<SendOptions & { readonly path?: string }>;
}

const PANEL = '/api/v1/panel';
const AUTH = '/api/v1/auth';
/** Id in the paths of routes on something of an account. */
export const NOTHING = '00000000-0000-7000-8000-000000000000';
const SMALLEST_PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
);

/** A route on one application, which the query names. */
function onApplication(route: string, scope: Scope, options: () => SendOptions = () => ({})): RouteCase {
  const [method = '', name = ''] = route.split(' ');
  const request = (applicationId: string) => {
    const { query, ...others } = options();
    return { query: { applicationId, ...(query as object) }, ...others };
  };
  return { method: method as RouteCase['method'], path: `${PANEL}/${name}`, scope, names: 'query', request };
}

function route(name: string, body?: () => object, scope?: Scope): RouteCase {
  const [method = '', path = ''] = name.split(' ');
  return { method: method as RouteCase['method'], path, ...(scope && { scope }), request: () => (body ? { body: body() } : {}) };
}

/** A route on a release: a published one for yanking and roll-outs, else a draft. */
function onRelease(method: RouteCase['method'], action: string, scope: Scope, body?: object): RouteCase {
  const ofRelease = (id: string) => `${PANEL}/releases/${id}${action}`;
  return {
    ...route(`${method} ${ofRelease(NOTHING)}`, body && (() => body), scope),
    prepare: async (api, applicationId) => {
      const release = { version: '1.0.0', channel: unique() };
      const { data } = await api.post(`${PANEL}/releases`, release, { applicationId });
      if (action === '/yank' || action === '/rollout') await api.post(`${PANEL}/releases/${data.id}/publish`);
      return { path: ofRelease(data.id), ...(body && { body }) };
    },
  };
}

const TUS = { 'tus-resumable': '1.0.0' };
const CHUNK = { ...TUS, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' };

/** The head of a request that creates a resumable upload. */
export function uploadHead(applicationId: string, fileName: string, byteSize: number, more: Record<string, string> = {}) {
  const pairs = Object.entries({ applicationId, fileName, ...more });
  const metadata = pairs.map(([key, value]) => `${key} ${Buffer.from(value).toString('base64')}`).join();
  return { ...TUS, 'upload-length': String(byteSize), 'upload-metadata': metadata };
}

/** A route on a resumable upload. */
function onUpload(method: RouteCase['method'], headers: Record<string, string> = TUS, body?: Uint8Array): RouteCase {
  const options = { headers, ...(body && { body }) };
  return {
    ...{ method, path: `${PANEL}/uploads/${NOTHING}`, scope: 'files:upload' },
    request: () => options,
    prepare: async (api, applicationId) => {
      const created = await api.post(`${PANEL}/uploads`, null, {}, { headers: uploadHead(applicationId, unique(), 3) });
      return { path: `${PANEL}/uploads/${created.data.id}`, ...options };
    },
  };
}

const BYTES = { 'content-type': 'application/octet-stream' };
const deletion = (fileId: string) => ({ body: { action: 'delete_file', fileId } });

/** Routes that accept a management key (specification 4). */
export const KEY_ROUTES: readonly RouteCase[] = [
  route(`GET ${PANEL}/get-applications`, undefined, 'applications:read'),
  route(`GET ${PANEL}/list-applications`, undefined, 'applications:read'),
  route(`POST ${PANEL}/create-application`, () => ({ name: 'An application' }), 'applications:create'),
  onApplication('POST create-application-license-levels', 'applications:update', () => ({ body: { levels: ['Basic', 'Pro'] } })),
  onApplication('GET get-application-license-levels', 'applications:read'),
  onApplication('PATCH update-application-settings', 'applications:update', () => ({
    body: { field: 'status', value: 'paused' },
  })),
  onApplication('PATCH update-api-keys', 'applications:update', () => ({ body: { type: 'socketKey' } })),
  onApplication('POST end-key-overlap', 'applications:update', () => ({ body: { type: 'socketKey' } })),
  onApplication('GET events', 'applications:read'),
  onApplication('GET get-usage', 'applications:read'),
  onApplication('GET get-live-clients', 'applications:read'),
  onApplication('GET get-application-settings', 'applications:read'),
  onApplication('POST upload-file', 'files:upload', () => ({
    ...{ query: { fileName: unique() }, body: new Uint8Array([1, 2, 3]), headers: BYTES },
  })),
  onApplication('POST check-file-name', 'files:upload', () => ({ body: { fileName: unique() } })),
  onApplication('GET get-files-metadata', 'files:read'),
  onApplication('GET get-files-table', 'files:read', () => ({ query: { currentPage: '1' } })),
  {
    ...onApplication('POST create-download-url', 'files:read', () => ({ body: { fileId: NOTHING } })),
    prepare: async (api, applicationId) => {
      await upload(api, applicationId, 'to-be-fetched');
      return { query: { applicationId }, body: { fileId: await findFileId(api, applicationId, 'to-be-fetched') } };
    },
  },
  {
    ...onApplication('POST file-action', 'files:delete', () => deletion(NOTHING)),
    prepare: async (api, applicationId) => {
      await upload(api, applicationId, 'to-be-deleted');
      return { query: { applicationId }, ...deletion(await findFileId(api, applicationId, 'to-be-deleted')) };
    },
  },
  route(`GET ${PANEL}/uploads`, undefined, 'files:upload'),
  {
    ...route(`POST ${PANEL}/uploads`, undefined, 'files:upload'),
    request: (applicationId) => ({ headers: uploadHead(applicationId, unique(), 3) }),
  },
  onUpload('GET'),
  onUpload('PATCH', CHUNK, new Uint8Array([1, 2, 3])),
  onUpload('DELETE'),
  onApplication('GET releases', 'files:read'),
  onApplication('POST releases', 'releases:write', () => ({ body: { version: '1.0.0' } })),
  onRelease('GET', '', 'files:read'),
  onRelease('PATCH', '', 'releases:write', { notes: 'Faster.' }),
  onRelease('DELETE', '', 'releases:write'),
  onRelease('POST', '/publish', 'releases:write'),
  onRelease('POST', '/yank', 'releases:write'),
  onRelease('POST', '/rollout', 'releases:write', { rolloutPercent: 10 }),
  onApplication('GET release-settings', 'files:read'),
  onApplication('PATCH release-settings', 'releases:write', () => ({ body: { publicUpdates: true } })),
  {
    ...route(`DELETE ${PANEL}/delete-application`, undefined, 'applications:delete'),
    names: 'body',
    request: (applicationId) => ({ body: { applicationId, code: '' } }),
  },
  route(`GET ${PANEL}/get-account-limits`, undefined, 'account:read'),
];

/** The key routes that work on one application. */
export const APPLICATION_ROUTES = KEY_ROUTES.filter(({ names }) => names !== undefined);

/** A wrong password: the request changes nothing. */
const wrongProof = (more: object) => () => ({ password: 'not the password', ...more });

const NEW_KEY = { name: 'A key', scopes: ['applications:read'], allApplications: true };

const newIssuer = () => ({
  ...{ name: unique(), issuer: 'https://issuer.example', audience: 'latchkey', claims: { sub: unique() } },
  ...{ scopes: ['applications:read'], allApplications: true, lifetimeSeconds: 60 },
});

/** A route on something of the account, which a POST to `collection` creates. */
function onOwn(method: RouteCase['method'], collection: string, action: string, create: () => object, body?: object): RouteCase {
  const toPath = (id: string) => `${PANEL}/${collection}/${id}${action}`;
  return {
    ...route(`${method} ${toPath(NOTHING)}`, body && (() => body)),
    prepare: async (api) => {
      const { data } = await api.post(`${PANEL}/${collection}`, create());
      return { path: toPath(data.id), ...(body && { body }) };
    },
  };
}

/** Routes that accept only a session (specification 5.1). */
export const SESSION_ROUTES: readonly RouteCase[] = [
  route(`GET ${PANEL}/api-keys`),
  route(`GET ${PANEL}/list-api-keys`),
  route(`POST ${PANEL}/api-keys`, () => NEW_KEY),
  route(`GET ${PANEL}/api-keys/${NOTHING}`),
  route(`GET ${PANEL}/api-keys/${NOTHING}/requests`),
  onOwn('PATCH', 'api-keys', '', () => NEW_KEY, { name: 'Another name' }),
  onOwn('POST', 'api-keys', '/revoke', () => NEW_KEY),
  onOwn('POST', 'api-keys', '/rotate', () => NEW_KEY),
  route(`GET ${PANEL}/trusted-issuers`),
  route(`POST ${PANEL}/trusted-issuers`, newIssuer),
  onOwn('DELETE', 'trusted-issuers', '', newIssuer),
  route(`GET ${PANEL}/audit-log`),
  { ...route(`POST ${PANEL}/upload-avatar`), request: () => ({ body: SMALLEST_PNG, headers: { 'content-type': 'image/png' } }) },
  route(`GET ${PANEL}/avatar`),
  route(`DELETE ${PANEL}/avatar`),
  route(`GET ${AUTH}/session`),
  route(`GET ${AUTH}/sessions`),
  route(`DELETE ${AUTH}/sessions/${NOTHING}`),
  route(`POST ${AUTH}/two-factor/set-up`),
  route(`POST ${AUTH}/two-factor/enable`, () => ({ code: '123456' })),
  route(`POST ${AUTH}/two-factor/disable`, wrongProof({ code: '123456' })),
  route(`POST ${AUTH}/oidc/link`, wrongProof({ issuer: 'nowhere' })),
  route(`GET ${AUTH}/oidc/links`),
  route(`POST ${AUTH}/oidc/unlink`, wrongProof({ issuer: 'nowhere' })),
  route(`DELETE ${AUTH}/account`, wrongProof({})),
  route(`POST ${AUTH}/password/change`, wrongProof({ newPassword: 'another long passphrase' })),
  route(`POST ${AUTH}/email/change`, wrongProof({ email: 'another@example.com' })),
  route(`POST ${AUTH}/email/confirm`, () => ({ token: 'not a token' })),
  route(`POST ${AUTH}/sign-out`),
  route(`POST ${AUTH}/sign-out-everywhere`),
];

export const nameOf = ({ method, path }: RouteCase): string => `${method} ${path.replace(NOTHING, ':id')}`;
