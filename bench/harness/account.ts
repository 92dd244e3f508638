import { randomBytes } from 'node:crypto';
import { SCOPES } from '@latchkey/contract/scopes';
import { request } from './request.ts';

export interface Caller {
  readonly headers: Record<string, string>;
  /** For routes that require a session. */
  readonly sessionHeaders: Record<string, string>;
  readonly applicationId: string;
  readonly socketKey: string;
  readonly httpKey: string;
}

/** Signs up, creates a key and an application. */
export async function prepareCaller(baseUrl: string): Promise<Caller> {
  const name = `bench-${randomBytes(6).toString('hex')}`;
  const panel = `${baseUrl}/api/v1/panel`;
  const account = { username: name, email: `${name}@example.com`, password: randomBytes(12).toString('hex') };
  const signedUp = await request(`${baseUrl}/api/v1/auth/sign-up`, { json: account });
  const cookie = signedUp.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const sessionHeaders = { cookie, 'x-csrf-token': signedUp.body.data.csrfToken };
  const key = { name: 'bench', scopes: SCOPES, allApplications: true };
  const { body: created } = await request(`${panel}/api-keys`, { json: key, headers: sessionHeaders });
  const headers = { authorization: `Bearer ${created.data.plaintextKey}` };
  await request(`${panel}/create-application`, { json: { name: 'Benchmark' }, headers });
  const { body: list } = await request(`${panel}/get-applications`, { method: 'GET', headers });
  const [{ id, applicationApiKeys }] = list.data;
  const { socketKey, httpKey } = applicationApiKeys;
  return { headers, sessionHeaders, applicationId: id, socketKey, httpKey };
}

/** Publishes a release of one file, and returns the feed of its channel. */
export async function publishRelease(baseUrl: string, { headers, applicationId, httpKey }: Caller) {
  const panel = `${baseUrl}/api/v1/panel`;
  const type = { 'content-type': 'application/octet-stream' };
  const upload = `${panel}/upload-file?applicationId=${applicationId}&fileName=setup.exe`;
  const { body: file } = await request(upload, { headers: { ...headers, ...type }, body: 'setup' });
  const artifact = { fileId: file.data.id, name: 'Setup.exe', platform: 'windows', arch: 'x86_64', kind: 'exe' };
  const json = { version: '1.4.0', artifacts: [artifact] };
  const { body: draft } = await request(`${panel}/releases?applicationId=${applicationId}`, { headers, json });
  await request(`${panel}/releases/${draft.data.id}/publish`, { headers });
  const url = `${baseUrl}/api/v1/updates/${applicationId}/stable/latest.json`;
  return { url, headers: { authorization: `Bearer ${httpKey}` } };
}
