import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  ConfigError,
  integerSetting,
  listSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  secretSetting,
  serviceCredentialsSetting,
  trustedProxiesSetting,
  urlSetting,
} from './config.ts';
import { trustProxies } from './http/client-ip.ts';

const schema = z.object({
  PORT: portSetting.default(8080),
  WORKERS: integerSetting(1, 8),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:'),
  SECRET: secretSetting,
  HOSTS: listSetting.default([]),
  LOG_LEVEL: logLevelSetting.default('info'),
});
const valid = { WORKERS: '4', DATABASE_URL: 'postgres://u:p@h/db', SECRET: 's'.repeat(32) };

function problems(env: NodeJS.ProcessEnv, of: z.ZodObject = schema): string {
  try {
    readConfig(of, env);
  } catch (err) {
    expect(err).toBeInstanceOf(ConfigError);
    return (err as ConfigError).message;
  }
  return expect.fail('the settings were accepted');
}

describe('readConfig', () => {
  it('reads settings, fills in defaults and leaves the rest of the environment alone', () => {
    const config = readConfig(schema, { ...valid, HOSTS: ' a, b,,', PORT: '', OTHER: 'x' });
    expect(config).toEqual({ ...valid, WORKERS: 4, PORT: 8080, HOSTS: ['a', 'b'], LOG_LEVEL: 'info' });
  });

  it('names every problem at once', () => {
    expect(problems({ PORT: '70000', WORKERS: '9', LOG_LEVEL: 'loud', SECRET: 'short' }).split('\n')).toEqual([
      'PORT must be a whole number from 0 to 65535',
      'WORKERS must be a whole number from 1 to 8',
      'DATABASE_URL is required',
      'SECRET must have at least 32 characters',
      'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent',
    ]);
  });

  it('never repeats a value', () => {
    const swordfish = {
      PORT: 'swordfish',
      WORKERS: 'swordfish',
      DATABASE_URL: 'swordfish',
      SECRET: 'swordfish',
      LOG_LEVEL: 'swordfish',
    };
    expect(problems(swordfish)).not.toContain('swordfish');
  });

  it('holds an empty variable for one that is not set', () => {
    expect(problems({ ...valid, SECRET: '' })).toBe('SECRET is required');
  });

  it.each([
    ['letters that are not ASCII', '密'.repeat(32)],
    ['a blank', `${'c'.repeat(32)} ${'c'.repeat(32)}`],
    ['the end of a line', `${'c'.repeat(32)}\n${'c'.repeat(32)}`],
    ['one of which no header carries', `${'c'.repeat(32)},${'é'.repeat(32)}`],
  ])('takes no service credentials with %s', (_what, CREDENTIALS) => {
    const of = z.object({ CREDENTIALS: serviceCredentialsSetting });
    expect(problems({ CREDENTIALS }, of)).toBe('CREDENTIALS must be of printable ASCII characters, without blanks');
    expect(problems({ CREDENTIALS: '密' }, of).split('\n')).toHaveLength(2);
    const printable = '!"#$%&\'()*+-./09:;<=>?@AZ[\\]^_`az{|}~';
    expect(readConfig(of, { CREDENTIALS: ` ${printable} , ${'c'.repeat(32)}` })).toEqual({
      CREDENTIALS: [printable, 'c'.repeat(32)],
    });
  });

  it.each(['1.5', '-1', '1e3', ' 1', '0x1', '٣', '1'.repeat(16)])('takes %j for no whole number', (text) => {
    expect(problems({ ...valid, PORT: text })).toContain('PORT');
  });

  it('takes a URL with another scheme for none', () => {
    expect(problems({ ...valid, DATABASE_URL: 'http://h/db' })).toBe(
      'DATABASE_URL must be a URL that starts with postgres:// or postgresql://',
    );
  });

  it.each(['10.0.0.1', '10.0.0.0/8', '2001:db8::/32', '::1', 'loopback', 'linklocal, uniquelocal,10.0.0.0/1'])(
    'takes %j for proxies, in each of which trust can be put',
    (text) => {
      const { PROXIES } = readConfig(z.object({ PROXIES: trustedProxiesSetting }), { PROXIES: text });
      expect(() => trustProxies(PROXIES)).not.toThrow();
    },
  );

  it.each([
    'proxy',
    '10.0.0.0/33',
    '10.0.0.0/0',
    '::/0',
    '::/129',
    '10.0.0.0/8/8',
    '10.0.0.0/',
    '10.0.0',
    'loopback/8',
    'LOOPBACK',
    '10.0.0.1 ::1',
  ])('takes %j for no proxies', (text) => {
    expect(problems({ PROXIES: text }, z.object({ PROXIES: trustedProxiesSetting }))).toMatch(/^PROXIES must list addresses/);
  });

  it('reports rules over several settings under the name they give, or without one', () => {
    const both = z
      .object({ A: z.string().optional(), B: z.string().optional() })
      .refine(({ A, B }) => !A || B, { path: ['B'], message: 'must be set when A is' })
      .refine(({ A, B }) => A !== B, 'A and B must differ');
    expect(problems({ A: 'x' }, both)).toBe('B must be set when A is');
    expect(problems({ A: 'x', B: 'x' }, both)).toBe('A and B must differ');
  });
});
