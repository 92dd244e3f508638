import { randomBytes } from 'node:crypto';
import type { Target } from './load.ts';

/** Signs up, makes a key and an application, and answers the request for its settings. */
export async function prepareSettingsRequest(baseUrl: string): Promise<Target & { readonly applicationId: string }> {
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
  const signedUp = await post('/api/v1/auth/sign-up', {
    username: name,
    email: `${name}@example.com`,
    password: randomBytes(12).toString('hex'),
  });
  const cookie = signedUp.response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const key = await post(
    '/api/v1/panel/api-keys',
    { name: 'bench', scopes: ['applications:read', 'applications:create'], allApplications: true },
    { cookie, 'x-csrf-token': signedUp.data.csrfToken ?? '' },
  );
  const headers = { authorization: `Bearer ${key.data.plaintextKey}` };
  await post('/api/v1/panel/create-application', { name: 'Benchmark' }, headers);
  const list = await fetch(`${baseUrl}/api/v1/panel/get-applications`, { headers });
  const applicationId = ((await list.json()) as { data: Array<{ id: string }> }).data[0]?.id ?? '';
  return { url: `${baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`, headers, applicationId };
}
