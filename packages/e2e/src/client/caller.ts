import { randomBytes } from 'node:crypto';
import { SCOPES, type Scope } from '@latchkey/contract/scopes';
import { inject } from 'vitest';
import { Api } from './api.ts';
import { listFiles } from './files.ts';
import '../instance/shared-instance.ts';

export interface Owner {
  /** The session: its cookie and its CSRF token. */
  readonly session: Api;
  readonly accountId: string;
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly cookie: string;
  readonly csrfToken: string;
}

export interface Key {
  readonly api: Api;
  readonly id: string;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read the record.
  readonly record: any;
}

/** Settings of a new key; without them it is unrestricted. */
export interface KeyOptions {
  readonly name?: string;
  readonly scopes?: readonly Scope[];
  readonly allApplications?: boolean;
  readonly applicationIds?: readonly string[];
  readonly expiresAt?: string | null;
}

/** A client without a credential of the instance that the tests share. */
export function sharedApi(): Api {
  return new Api(inject('latchkeyInstance').baseUrl);
}

/** Text that no other test uses, of ASCII letters and digits. */
export function unique(prefix = ''): string {
  return prefix + randomBytes(8).toString('hex');
}

/** An input that breaks the rules for ids, codes, keys and file names, and that no error repeats. */
export const MARKER = 'zq"Marker<%7>qz';

export const PASSWORD = 'correct horse battery staple';

/** Signs up a new account. */
export async function signUp(api: Api = sharedApi(), username = unique('user')): Promise<Owner> {
  const email = `${username}@example.com`;
  const { headers, data } = await api.post('/api/v1/auth/sign-up', { username, email, password: PASSWORD });
  const cookie = cookieOf(headers);
  const session = api.with({ cookie, 'x-csrf-token': data.csrfToken });
  return { session, accountId: data.account.id, username, email, password: PASSWORD, cookie, csrfToken: data.csrfToken };
}

/** The session cookie that an answer sets, as a client sends it. */
export function cookieOf(headers: Headers): string {
  const [pair = ''] = (headers.get('set-cookie') ?? '').split(';', 1);
  return pair;
}

/** Makes a management key of the account. */
export async function createKey({ session }: Owner, options: KeyOptions = {}): Promise<Key> {
  const { applicationIds } = options;
  const body = { name: 'Test key', scopes: SCOPES, allApplications: applicationIds === undefined, ...options };
  const { status, data, text } = await session.post('/api/v1/panel/api-keys', body);
  if (status !== 200) throw new Error(`The key was not made: ${text}`);
  const { plaintextKey, ...record } = data;
  const api = new Api(session.baseUrl, { authorization: `Bearer ${plaintextKey}` });
  return { api, id: record.id, text: plaintextKey, record };
}

/** Makes an application and answers its id. */
export async function createApplication(api: Api, name = unique('app-')): Promise<string> {
  const { status, headers, text } = await api.post('/api/v1/panel/create-application', { name });
  if (status !== 200) throw new Error(`The application was not made: ${text}`);
  return new URL(headers.get('location') ?? '', api.baseUrl).searchParams.get('applicationId') as string;
}

/** Everything of an account that a rejected request must leave unchanged, as one text. */
export async function readState({ session }: Owner, { keys: withKeys = true } = {}): Promise<string> {
  const applications = (await session.get('/api/v1/panel/get-applications')).data as Array<{ id: string }>;
  const details = await Promise.all(
    applications.flatMap(({ id: applicationId }) => [
      session.get('/api/v1/panel/get-application-settings', { applicationId }),
      session.get('/api/v1/panel/get-application-license-levels', { applicationId }),
      session.get('/api/v1/panel/get-files-metadata', { applicationId }),
      listFiles(session, applicationId),
    ]),
  );
  const keys = withKeys ? ((await session.get('/api/v1/panel/api-keys')).data as Array<Record<string, unknown>>) : [];
  const unused = keys.map(({ lastUsedAt: _at, lastUsedIp: _ip, ...record }) => record);
  return JSON.stringify(
    { applications, details: details.map((detail) => ('data' in detail ? detail.data : detail)), keys: unused },
    null,
    1,
  );
}
