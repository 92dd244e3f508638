import { rm, writeFile } from 'node:fs/promises';
import { createAuthority, writeTlsFiles } from '@latchkey/testkit/network/certificates';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { readConfig } from '../config/settings.ts';
import { problemsOf } from '../testing/config-problems.ts';
import { certificateFolder } from '../testing/tls.ts';
import { checkServiceTls, serviceUrlSetting } from './tls-settings.ts';

const authority = await createAuthority();

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
  const [http, https] = ['http', 'https'].map((scheme) => ({ APPS_URL: `${scheme}://apps`, IDENTITY_URL: `${scheme}://i` }));
  const tls = await files();
  const problems = (text: string) => ['APPS_URL', 'IDENTITY_URL'].map((name) => `${name} must start with ${text} is set`);
  expect([check({ ...http }), check({ ...https, ...tls })]).toEqual([[], []]);
  expect(check({ ...https })).toEqual(problems('http:// unless SERVICE_TLS_CERT_FILE'));
  expect(check({ ...http, ...tls })).toEqual(problems('https:// as SERVICE_TLS_CERT_FILE'));
});

it('wrong files are named, each with its problem', async () => {
  const [own, other] = [await authority.issue(), await authority.issue()];
  const expired = check(await files(authority.issue({ endsInMs: -1_000 })));
  expect(expired).toEqual([expect.stringMatching(/^SERVICE_TLS_CERT_FILE holds a certificate that has expired \(.*Z\)$/)]);
  const wrong = { cert: { cert: 'hello' }, key: { key: other.key }, 'key ': { key: 'hello' } };
  for (const [name, replaced] of Object.entries(wrong)) {
    const problem = expect.stringContaining(`SERVICE_TLS_${name.trim().toUpperCase()}_FILE is invalid: `);
    expect(check(await files(Promise.resolve({ ...own, ...replaced })))).toEqual([problem]);
  }
  const paths = await files();
  await writeFile(paths.SERVICE_TLS_CA_FILE, 'nothing');
  expect(check(paths)).toEqual([expect.stringContaining('SERVICE_TLS_CA_FILE is invalid: ')]);
  for (const path of Object.values(paths)) await rm(path);
  expect(check(paths)).toEqual(Object.keys(paths).map((name) => `${name} can't be read (ENOENT)`));
});

it('the URL of a service has a scheme, a host and a port only', () => {
  const readUrl = (APPS_URL: string) => readConfig(z.object({ APPS_URL: serviceUrlSetting }), { APPS_URL });
  for (const url of ['http://127.0.0.1:8082', 'https://apps:8082', 'http://apps', 'http://[::1]:8082/']) {
    expect(readUrl(url)).toEqual({ APPS_URL: url });
  }
  for (const rest of ['apps:8082/api', 'apps:8082?x=1', 'apps:8082/#x', 'ada:secret@apps:8082']) {
    const problem = /^APPS_URL must be http:\/\/host:port or https:\/\/host:port, and nothing more$/;
    expect(() => readUrl(`http://${rest}`)).toThrow(problem);
  }
  expect(() => readUrl('apps:8082')).toThrow(/^APPS_URL must be a URL that starts with http:\/\/ or https:\/\/$/);
});
