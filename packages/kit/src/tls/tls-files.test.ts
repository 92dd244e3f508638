import { chmod, rm, writeFile } from 'node:fs/promises';
import {
  CLIENT_PURPOSE,
  createAuthority,
  SERVER_PURPOSE,
  type TestAuthority,
  writeTlsFiles,
} from '@latchkey/testkit/certificates';
import { beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from '../config.ts';
import { certificateFolder } from '../testing/tls.ts';
import { readTlsMaterial, type TlsFiles } from './tls-files.ts';
import { checkServiceTls } from './tls-settings.ts';

let authority: TestAuthority;
let stranger: TestAuthority;
beforeAll(async () => {
  [authority, stranger] = await Promise.all([createAuthority(), createAuthority('A stranger')]);
});

function problemsOf(read: () => unknown): string[] {
  try {
    read();
  } catch (err) {
    expect(err).toBeInstanceOf(ConfigError);
    return (err as Error).message.split('\n');
  }
  return [];
}

const filesOf = async (certificate: { cert: string; key: string }, ca = authority.ca): Promise<TlsFiles> =>
  writeTlsFiles(await certificateFolder(), certificate, ca);

describe('the files for TLS', () => {
  it('are taken where the certificate, its key and the authority belong together', async () => {
    const { cert, key } = await authority.issue();
    expect(readTlsMaterial(await filesOf({ cert, key }))).toMatchObject({ cert, key, ca: authority.ca });
  });

  it('may hold several authorities, and an intermediate one after the certificate', async () => {
    const intermediate = await authority.issueAuthority();
    const { cert, key } = await intermediate.issue();
    const chained = await filesOf({ cert: cert + intermediate.ca, key }, stranger.ca + authority.ca);
    expect(problemsOf(() => readTlsMaterial(chained))).toEqual([]);
    const foreign = await stranger.issue();
    const unchained = [await filesOf({ cert, key }), await filesOf({ cert: foreign.cert + intermediate.ca, key: foreign.key })];
    for (const files of unchained) {
      expect(problemsOf(() => readTlsMaterial(files))).toEqual([expect.stringContaining('has signed')]);
    }
  });

  it('may be put together without a line between them', async () => {
    const { cert, key } = await authority.issue();
    const files = await filesOf(
      { cert: cert.trimEnd() + stranger.ca.trimEnd(), key },
      stranger.ca.trimEnd() + authority.ca.trimEnd(),
    );
    expect(readTlsMaterial(files)).toMatchObject({ cert: cert + stranger.ca, ca: stranger.ca + authority.ca });
  });

  it.each([
    [
      'has expired',
      async () => authority.issue({ endsInMs: -1_000 }),
      /^SERVICE_TLS_CERT_FILE holds a certificate that has expired \(.*Z\)$/,
    ],
    ['is not valid yet', async () => authority.issue({ beginsInMs: 60_000 }), /^SERVICE_TLS_CERT_FILE .* is not valid yet/],
    ['is of a stranger', async () => stranger.issue(), /^SERVICE_TLS_CERT_FILE .* nobody in SERVICE_TLS_CA_FILE has signed$/],
    ['is for servers only', async () => authority.issue({ purposes: [SERVER_PURPOSE] }), /not for servers and clients both/],
    ['is for clients only', async () => authority.issue({ purposes: [CLIENT_PURPOSE] }), /not for servers and clients both/],
    [
      'has another key',
      async () => ({ ...(await authority.issue()), key: (await authority.issue()).key }),
      /^SERVICE_TLS_KEY_FILE is not the key of the certificate in SERVICE_TLS_CERT_FILE$/,
    ],
    [
      'is none',
      async () => ({ ...(await authority.issue()), cert: 'hello' }),
      /^SERVICE_TLS_CERT_FILE holds no certificate in PEM$/,
    ],
    [
      'is broken',
      async () => ({
        ...(await authority.issue()),
        cert: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      }),
      /^SERVICE_TLS_CERT_FILE holds a certificate that can't be read$/,
    ],
    ['has no key', async () => ({ ...(await authority.issue()), key: 'hello' }), /^SERVICE_TLS_KEY_FILE holds no private key/],
  ])('are refused, with the one reason, where the certificate %s', async (_what, make, expected) => {
    const files = await filesOf(await make());
    expect(problemsOf(() => readTlsMaterial(files))).toEqual([expect.stringMatching(expected)]);
  });

  it('are refused with every reason at once', async () => {
    const files = await filesOf({ cert: (await stranger.issue({ endsInMs: -1_000 })).cert, key: 'hello' });
    expect(problemsOf(() => readTlsMaterial(files))).toHaveLength(3);
    await rm(files.SERVICE_TLS_CERT_FILE);
    await writeFile(files.SERVICE_TLS_CA_FILE, 'nothing');
    await chmod(files.SERVICE_TLS_KEY_FILE, 0o600);
    expect(problemsOf(() => readTlsMaterial(files))).toEqual([
      "SERVICE_TLS_CERT_FILE can't be read (ENOENT)",
      'SERVICE_TLS_CA_FILE holds no certificate in PEM',
      'SERVICE_TLS_KEY_FILE holds no private key in PEM that is readable without a password',
    ]);
  });
});

describe('the settings of TLS', () => {
  const check = (env: NodeJS.ProcessEnv) => problemsOf(() => checkServiceTls(env, ['APPS_URL', 'IDENTITY_URL']));

  it('are all three or none', () => {
    expect(check({ SERVICE_TLS_KEY_FILE: '/x' })).toEqual([
      'SERVICE_TLS_CERT_FILE is required with SERVICE_TLS_KEY_FILE',
      'SERVICE_TLS_CA_FILE is required with SERVICE_TLS_KEY_FILE',
    ]);
    expect(check({ SERVICE_TLS_KEY_FILE: '' })).toEqual([]);
  });

  it('go with https for the services that are called, and http goes without', async () => {
    const files = await filesOf(await authority.issue());
    const [http, https] = [
      { APPS_URL: 'http://apps', IDENTITY_URL: 'http://i' },
      { APPS_URL: 'https://apps', IDENTITY_URL: 'https://i' },
    ];
    expect(check(http)).toEqual([]);
    expect(check({ ...https, ...files })).toEqual([]);
    expect(check(https)).toEqual([
      'APPS_URL must start with http:// unless SERVICE_TLS_CERT_FILE is set',
      'IDENTITY_URL must start with http:// unless SERVICE_TLS_CERT_FILE is set',
    ]);
    expect(check({ ...http, ...files })).toEqual([
      'APPS_URL must start with https:// as SERVICE_TLS_CERT_FILE is set',
      'IDENTITY_URL must start with https:// as SERVICE_TLS_CERT_FILE is set',
    ]);
  });
});
