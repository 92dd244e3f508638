import type { Api, SendOptions } from './api.ts';
import { type Scope, unique } from './caller.ts';
import { findFileId, upload } from './files.ts';

/** A route as the specification lists it, with a request that is right in all ways. */
export interface RouteCase {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** What a key needs; of a session-only route, nothing. */
  readonly scope?: Scope;
  /** How the application is named, where one is. */
  readonly names?: 'query' | 'body';
  /** A valid request. It names nothing but the application. */
  request(applicationId: string): SendOptions;
  /** Makes what else the request has to name, and answers one that succeeds; where it is absent, `request` does. */
  prepare?(api: Api, applicationId: string): Promise<SendOptions>;
}

const PANEL = '/api/v1/panel';
const NOTHING = '00000000-0000-7000-8000-000000000000';
const query = (applicationId: string) => ({ query: { applicationId } });
const deletion = (applicationId: string, fileId: string) => ({
  ...query(applicationId),
  body: { action: 'delete_file', fileId },
});

/** A picture of one pixel. */
const SMALLEST_PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
);

/** The routes that take a management key (specification 4). */
export const KEY_ROUTES: readonly RouteCase[] = [
  { method: 'GET', path: `${PANEL}/get-applications`, scope: 'applications:read', request: () => ({}) },
  {
    method: 'POST',
    path: `${PANEL}/create-application`,
    scope: 'applications:create',
    request: () => ({ body: { name: 'An application' } }),
  },
  {
    method: 'POST',
    path: `${PANEL}/create-application-license-levels`,
    scope: 'applications:update',
    names: 'query',
    request: (id) => ({ ...query(id), body: { levels: ['Basic', 'Pro'] } }),
  },
  {
    method: 'GET',
    path: `${PANEL}/get-application-license-levels`,
    scope: 'applications:read',
    names: 'query',
    request: query,
  },
  {
    method: 'PATCH',
    path: `${PANEL}/update-application-settings`,
    scope: 'applications:update',
    names: 'query',
    request: (id) => ({ ...query(id), body: { field: 'status', value: 'paused' } }),
  },
  {
    method: 'PATCH',
    path: `${PANEL}/update-api-keys`,
    scope: 'applications:update',
    names: 'query',
    request: (id) => ({ ...query(id), body: { type: 'socketKey' } }),
  },
  { method: 'GET', path: `${PANEL}/get-application-settings`, scope: 'applications:read', names: 'query', request: query },
  {
    method: 'POST',
    path: `${PANEL}/upload-file`,
    scope: 'files:upload',
    names: 'query',
    request: (applicationId) => ({
      query: { applicationId, fileName: unique() },
      body: new Uint8Array([1, 2, 3]),
      headers: { 'content-type': 'application/octet-stream' },
    }),
  },
  {
    method: 'POST',
    path: `${PANEL}/check-file-name`,
    scope: 'files:upload',
    names: 'query',
    request: (id) => ({ ...query(id), body: { fileName: unique() } }),
  },
  { method: 'GET', path: `${PANEL}/get-files-metadata`, scope: 'files:read', names: 'query', request: query },
  {
    method: 'GET',
    path: `${PANEL}/get-files-table`,
    scope: 'files:read',
    names: 'query',
    request: (applicationId) => ({ query: { applicationId, currentPage: '1' } }),
  },
  {
    method: 'POST',
    path: `${PANEL}/file-action`,
    scope: 'files:delete',
    names: 'query',
    request: (id) => deletion(id, NOTHING),
    prepare: async (api, id) => {
      const fileName = unique();
      await upload(api, id, fileName);
      return deletion(id, await findFileId(api, id, fileName));
    },
  },
  {
    method: 'DELETE',
    path: `${PANEL}/delete-application`,
    scope: 'applications:delete',
    names: 'body',
    request: (applicationId) => ({ body: { applicationId, code: '' } }),
  },
  { method: 'GET', path: `${PANEL}/get-account-limits`, scope: 'account:read', request: () => ({}) },
];

/** The key routes that work on one application. */
export const APPLICATION_ROUTES = KEY_ROUTES.filter(({ names }) => names !== undefined);

/** The routes that take a session and nothing else (decisions 2). */
export const SESSION_ROUTES: readonly RouteCase[] = [
  { method: 'GET', path: `${PANEL}/api-keys`, request: () => ({}) },
  {
    method: 'POST',
    path: `${PANEL}/api-keys`,
    request: () => ({ body: { name: 'A key', scopes: ['applications:read'], allApplications: true } }),
  },
  { method: 'PATCH', path: `${PANEL}/api-keys/${NOTHING}`, request: () => ({ body: { name: 'Another name' } }) },
  { method: 'POST', path: `${PANEL}/api-keys/${NOTHING}/revoke`, request: () => ({}) },
  { method: 'GET', path: `${PANEL}/audit-log`, request: () => ({}) },
  { method: 'GET', path: '/api/v1/auth/session', request: () => ({}) },
  {
    method: 'POST',
    path: `${PANEL}/upload-avatar`,
    request: () => ({ body: SMALLEST_PNG, headers: { 'content-type': 'image/png' } }),
  },
  { method: 'GET', path: `${PANEL}/avatar`, request: () => ({}) },
  { method: 'POST', path: '/api/v1/auth/two-factor/set-up', request: () => ({}) },
  { method: 'POST', path: '/api/v1/auth/two-factor/enable', request: () => ({ body: { code: '123456' } }) },
  {
    method: 'POST',
    path: '/api/v1/auth/two-factor/disable',
    request: () => ({ body: { password: 'not the password', code: '123456' } }),
  },
  {
    method: 'POST',
    path: '/api/v1/auth/oidc/link',
    request: () => ({ body: { issuer: 'nowhere', password: 'not the password' } }),
  },
  { method: 'GET', path: '/api/v1/auth/oidc/links', request: () => ({}) },
  {
    method: 'POST',
    path: '/api/v1/auth/oidc/unlink',
    request: () => ({ body: { issuer: 'nowhere', password: 'not the password' } }),
  },
  { method: 'POST', path: '/api/v1/auth/sign-out', request: () => ({}) },
  { method: 'POST', path: '/api/v1/auth/sign-out-everywhere', request: () => ({}) },
];

export const nameOf = ({ method, path }: RouteCase): string => `${method} ${path.replace(NOTHING, ':id')}`;
