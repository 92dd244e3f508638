import { rm, writeFile } from 'node:fs/promises';
import { createAuthority, type TestAuthority, writeTlsFiles } from '@latchkey/testkit/certificates';
import { beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { readConfig } from '../config/settings.ts';
import { certificateFolder } from '../testing/tls.ts';
import { checkServiceTls, serviceUrlSetting } from './tls-settings.ts';

let authority: TestAuthority;
beforeAll(async () => {
  authority = await createAuthority();
});

function problemsOf(run: () => unknown): string[] {
  try {
    run();
    return [];
  } catch (err) {
    return (err as Error).message.split('\n');
  }
}

const check = (env: NodeJS.ProcessEnv) => problemsOf(() => checkServiceTls(env, ['APPS_URL', 'IDENTITY_URL']));
const files = async (certificate = authority.issue()) => ({
  ...(await writeTlsFiles(await certificateFolder(), await certificate, authority.ca)),
});

it('the files of TLS are all three or none', () => {
  expect(check({ SERVICE_TLS_KEY_FILE: '/x' })).toEqual([
    'SERVICE_TLS_CERT_FILE is required with SERVICE_TLS_KEY_FILE',
    'SERVICE_TLS_CA_FILE is required with SERVICE_TLS_KEY_FILE',
  ]);
  expect(check({ SERVICE_TLS_KEY_FILE: '' })).toEqual([]);
});

it('services are called by https with TLS, and by http without', async () => {
  const [http, https] = [
    { APPS_URL: 'http://apps', IDENTITY_URL: 'http://i' },
    { APPS_URL: 'https://apps', IDENTITY_URL: 'https://i' },
  ];
  expect([check(http), check({ ...https, ...(await files()) })]).toEqual([[], []]);
  const sentence = (scheme: string, why: string) =>
    ['APPS_URL', 'IDENTITY_URL'].map((name) => `${name} must start with ${scheme}:// ${why} SERVICE_TLS_CERT_FILE is set`);
  expect(check(https)).toEqual(sentence('http', 'unless'));
  expect(check({ ...http, ...(await files()) })).toEqual(sentence('https', 'as'));
});

it.each([
  [
    'has expired',
    () => authority.issue({ endsInMs: -1_000 }),
    /^SERVICE_TLS_CERT_FILE holds a certificate that has expired \(.*Z\)$/,
  ],
  ['is not PEM', async () => ({ ...(await authority.issue()), cert: 'hello' }), /^SERVICE_TLS_CERT_FILE is invalid: /],
  [
    'has another key',
    async () => ({ ...(await authority.issue()), key: (await authority.issue()).key }),
    /^SERVICE_TLS_KEY_FILE is invalid: /,
  ],
  ['has no key', async () => ({ ...(await authority.issue()), key: 'hello' }), /^SERVICE_TLS_KEY_FILE is invalid: /],
])('a certificate is rejected that %s', async (_what, make, problem) => {
  expect(check(await files(make()))).toEqual([expect.stringMatching(problem)]);
});

it('every file that cannot be read is named, and authorities that are none', async () => {
  const paths = await files();
  await writeFile(paths.SERVICE_TLS_CA_FILE, 'nothing');
  expect(check(paths)).toEqual([expect.stringMatching(/^SERVICE_TLS_CA_FILE is invalid: /)]);
  for (const path of Object.values(paths)) await rm(path);
  expect(check(paths)).toEqual(Object.keys(paths).map((name) => `${name} can't be read (ENOENT)`));
});

const readUrl = (APPS_URL: string) => readConfig(z.object({ APPS_URL: serviceUrlSetting }), { APPS_URL });

it.each(['http://127.0.0.1:8082', 'https://apps:8082', 'http://apps', 'http://[::1]:8082/'])(
  'the URL of a service may be %s',
  (url) => {
    expect(readUrl(url)).toEqual({ APPS_URL: url });
  },
);

it.each(['http://apps:8082/api', 'http://apps:8082?x=1', 'http://apps:8082/#x', 'http://ada:secret@apps:8082'])(
  'the URL of a service has a host and a port only, not %s',
  (url) => {
    expect(() => readUrl(url)).toThrow(/^APPS_URL must be http:\/\/host:port or https:\/\/host:port, and nothing more$/);
  },
);

it('the URL of a service has a scheme', () => {
  expect(() => readUrl('apps:8082')).toThrow(/^APPS_URL must be a URL that starts with http:\/\/ or https:\/\/$/);
});
