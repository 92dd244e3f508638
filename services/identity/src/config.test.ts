import { expect, test } from 'vitest';
import { readIdentityProcessConfig } from './config.ts';

const CREDENTIAL = 'service-credential-of-32-characters';

test('all wrong settings are reported, without their values', () => {
  const env = {
    DATABASE_URL: 'mysql://root:hunter2@localhost/identity',
    REDIS_URL: 'localhost:6379',
    SIGN_UP: 'maybe',
    ACTIVE_API_KEYS_LIMIT: '-1',
    SERVICE_CREDENTIALS: `${CREDENTIAL},${CREDENTIAL},${CREDENTIAL}`,
    APPS_URL: 'apps:8082',
    MIGRATE_ON_START: 'yes',
    SMTP_URL: 'mail.example.test:25',
    OIDC_ISSUERS: 'a,b',
    OIDC_A_ISSUER: 'http://hunter2.test',
    OIDC_A_CLIENT_SECRET: 'hunter2\u00e9',
    OIDC_A_SCOPES: 'profile',
  };
  let problems = '';
  try {
    readIdentityProcessConfig(env);
  } catch (err) {
    problems = (err as Error).message;
  }
  expect(problems.split('\n')).toEqual([
    expect.stringContaining('DATABASE_URL must be a URL'),
    expect.stringContaining('REDIS_URL must be a URL'),
    'SECRET_KEY is required',
    'SIGN_UP must be open or closed',
    expect.stringContaining('ACTIVE_API_KEYS_LIMIT must be a whole number'),
    expect.stringContaining('SMTP_URL must be a URL'),
    expect.stringContaining('SERVICE_CREDENTIALS must hold one or two'),
    'MIGRATE_ON_START must be true or false',
    expect.stringContaining('APPS_URL must be a URL'),
    'OIDC_A_ISSUER must be an https URL without query, or http on loopback',
    'OIDC_A_CLIENT_SECRET must be ASCII text of up to 1,024 characters',
    'OIDC_A_SCOPES must contain openid',
    'OIDC_A_CLIENT_ID is required',
    'OIDC_B_ISSUER is required',
    'OIDC_B_CLIENT_ID is required',
    'MAIL_FROM is required with SMTP_URL',
  ]);
  for (const value of ['hunter2', CREDENTIAL]) expect(problems).not.toContain(value);
});
