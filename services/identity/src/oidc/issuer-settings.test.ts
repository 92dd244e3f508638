import { describe, expect, test } from 'vitest';
import { readIdentityConfig } from '../config.ts';

const COMMON = { DATABASE_URL: 'postgres://localhost', REDIS_URL: 'redis://localhost', SECRET_KEY: 's'.repeat(32) };
const ONE = { OIDC_ISSUERS: 'corp', OIDC_CORP_ISSUER: 'https://id.corp.test/realm', OIDC_CORP_CLIENT_ID: 'latchkey' };

/** The problems that settings have, one a line. */
function problemsOf(env: Record<string, string>): string {
  try {
    readIdentityConfig({ ...COMMON, ...env });
    return '';
  } catch (err) {
    return (err as Error).message;
  }
}

describe('issuers', () => {
  test('are those that OIDC_ISSUERS names', () => {
    const others = { OIDC_RETURN_URL: 'https://corp.test', OIDC_CORP_ISSUER: '' };
    expect(readIdentityConfig({ ...COMMON, ...others }).oidcIssuers).toEqual([]);
  });

  test.each([undefined, 'crop'])('must be named if they have settings, not as %j', (named) => {
    const crop = { OIDC_CROP_ISSUER: 'https://id.crop.test', OIDC_CROP_CLIENT_ID: 'latchkey' };
    const problems = problemsOf({ ...ONE, OIDC_ISSUERS: '', ...(named && { ...crop, OIDC_ISSUERS: named }) });
    expect(problems.split('\n')).toEqual([
      'OIDC_CORP_ISSUER is of an issuer that OIDC_ISSUERS does not name',
      'OIDC_CORP_CLIENT_ID is of an issuer that OIDC_ISSUERS does not name',
    ]);
  });

  test('have their own settings', () => {
    const other = {
      OIDC_B2_ISSUER: 'http://127.0.0.1:4000',
      OIDC_B2_CLIENT_ID: 'b',
      OIDC_B2_CLIENT_SECRET: 'c',
      OIDC_B2_SCOPES: 'openid',
    };
    const { oidcIssuers } = readIdentityConfig({ ...COMMON, ...ONE, ...other, OIDC_ISSUERS: 'corp, b2' });
    expect(oidcIssuers).toEqual([
      {
        name: 'corp',
        url: new URL('https://id.corp.test/realm'),
        clientId: 'latchkey',
        clientSecret: undefined,
        scopes: 'openid profile email',
      },
      { name: 'b2', url: new URL('http://127.0.0.1:4000'), clientId: 'b', clientSecret: 'c', scopes: 'openid' },
    ]);
  });

  test.each([
    'http://id.corp.test',
    'http://localhost.corp.test',
    'http://127.0.0.1.corp.test',
    'https://id.corp.test/?a=b',
    'https://id.corp.test/#a',
    'https://user:secret@id.corp.test',
    'ftp://id.corp.test',
    'id.corp.test',
  ])('are rejected at %s', (url) => {
    const problems = problemsOf({ ...ONE, OIDC_CORP_ISSUER: url });
    expect(problems).toBe('OIDC_CORP_ISSUER must be an https URL without query, or http on loopback');
  });

  test.each([
    ['Corp', 'OIDC_ISSUERS must list names of lower-case letters and digits'],
    ['a-b', 'OIDC_ISSUERS must list names of lower-case letters and digits'],
    ['corp,corp', 'OIDC_ISSUERS must not name an issuer twice'],
    [Array.from({ length: 21 }, (_, i) => `i${i}`).join(), 'OIDC_ISSUERS must name at most 20 issuers'],
  ])('cannot be named %j', (OIDC_ISSUERS, problem) => {
    expect(problemsOf({ ...ONE, OIDC_ISSUERS })).toBe(problem);
  });
});
