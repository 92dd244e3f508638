import { randomBytes } from 'node:crypto';
import { SCOPES } from '@latchkey/contract/scopes';

/** A client with a key of all scopes, and an application of its account. */
export interface Caller {
  readonly headers: Record<string, string>;
  /** For routes that require a session. */
  readonly sessionHeaders: Record<string, string>;
  readonly applicationId: string;
  readonly socketKey: string;
}

/** Signs up, creates a key and an application. */
export async function prepareCaller(baseUrl: string): Promise<Caller> {
  const name = `bench-${randomBytes(6).toString('hex')}`;
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return { response, data: ((await response.json()) as { data: Record<string, string> }).data };
  };
  const account = { username: name, email: `${name}@example.com`, password: randomBytes(12).toString('hex') };
  const signedUp = await post('/api/v1/auth/sign-up', account);
  const cookie = signedUp.response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const sessionHeaders = { cookie, 'x-csrf-token': signedUp.data.csrfToken ?? '' };
  const key = await post('/api/v1/panel/api-keys', { name: 'bench', scopes: SCOPES, allApplications: true }, sessionHeaders);
  const headers = { authorization: `Bearer ${key.data.plaintextKey}` };
  await post('/api/v1/panel/create-application', { name: 'Benchmark' }, headers);
  const list = await fetch(`${baseUrl}/api/v1/panel/get-applications`, { headers });
  const { data } = (await list.json()) as { data: [{ id: string; applicationApiKeys: { socketKey: string } }] };
  return { headers, sessionHeaders, applicationId: data[0].id, socketKey: data[0].applicationApiKeys.socketKey };
}
