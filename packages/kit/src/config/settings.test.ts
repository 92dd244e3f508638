import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { problemsOf } from '../testing/config-problems.ts';
import {
  integerSetting,
  listSetting,
  logLevelSetting,
  portSetting,
  readConfig,
  secretSetting,
  serviceCredentialsSetting,
  trustedProxiesSetting,
  urlSetting,
} from './settings.ts';

const schema = z.object({
  PORT: portSetting.default(8080),
  WORKERS: integerSetting(1, 8),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:'),
  SECRET: secretSetting,
  HOSTS: listSetting.default([]),
  LOG_LEVEL: logLevelSetting.default('info'),
});
const valid = { WORKERS: '4', DATABASE_URL: 'postgres://u:p@h/db', SECRET: 's'.repeat(32) };

const problemsIn = (env: NodeJS.ProcessEnv, of: z.ZodObject = schema) => problemsOf(() => readConfig(of, env));

describe('readConfig', () => {
  it('reads settings, fills in defaults, and ignores other and empty variables', () => {
    const config = readConfig(schema, { ...valid, HOSTS: ' a, b,,', PORT: '', OTHER: 'x' });
    expect(config).toEqual({ ...valid, WORKERS: 4, PORT: 8080, HOSTS: ['a', 'b'], LOG_LEVEL: 'info' });
    expect(problemsIn({ ...valid, SECRET: '' })).toEqual(['SECRET is required']);
  });

  it('names every problem together, and never a value', () => {
    const wrong = { PORT: 'swordfish', WORKERS: '9', DATABASE_URL: 'http://swordfish/', LOG_LEVEL: 'swordfish' };
    expect(problemsIn(wrong)).toEqual([
      'PORT must be a whole number from 0 to 65535',
      'WORKERS must be a whole number from 1 to 8',
      'DATABASE_URL must be a URL that starts with postgres:// or postgresql://',
      'SECRET is required',
      'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent',
    ]);
    expect(problemsIn({ ...valid, SECRET: 'swordfish' })).toEqual(['SECRET must have at least 32 characters']);
  });

  it.each(['1.5', '-1', ' 1', '0x1', '٣', '1'.repeat(16)])('rejects %j as a whole number', (PORT) => {
    expect(problemsIn({ ...valid, PORT })).toHaveLength(1);
  });

  it('reports rules over several settings under the name they give, or without one', () => {
    const both = z
      .object({ A: z.string().optional(), B: z.string().optional() })
      .refine(({ A, B }) => !A || B, { path: ['B'], message: 'must be set when A is' })
      .refine(({ A, B }) => A !== B, 'A and B must differ');
    expect(problemsIn({ A: 'x' }, both)).toEqual(['B must be set when A is']);
    expect(problemsIn({ A: 'x', B: 'x' }, both)).toEqual(['A and B must differ']);
  });
});

describe('service credentials', () => {
  const of = z.object({ CREDENTIALS: serviceCredentialsSetting });

  it('may hold every printable ASCII character', () => {
    const printable = '!"#$%&\'()*+-./09:;<=>?@AZ[\\]^_`az{|}~';
    const other = 'c'.repeat(32);
    expect(readConfig(of, { CREDENTIALS: ` ${printable} , ${other}` })).toEqual({ CREDENTIALS: [printable, other] });
  });

  it.each([',', Array(3).fill('c'.repeat(32)).join(',')])('are one or two, and not %j', (CREDENTIALS) => {
    expect(problemsIn({ CREDENTIALS }, of)).toEqual(['CREDENTIALS must hold one or two credentials']);
  });

  it.each(['密'.repeat(32), `${'c'.repeat(32)} ${'c'.repeat(32)}`, `${'c'.repeat(32)},${'é'.repeat(32)}`])(
    'reject %s',
    (CREDENTIALS) => {
      expect(problemsIn({ CREDENTIALS }, of)).toEqual(['CREDENTIALS must be of printable ASCII characters, without blanks']);
    },
  );
});

const WRONG_PROXIES = ['proxy', '10.0.0.0/33', '10.0.0.0/0', '::/0', '::/129', '10.0.0.0/8/8', '10.0.0.0/', 'loopback/8'];

it('trusted proxies are addresses, ranges or names of ranges', () => {
  const of = z.object({ PROXIES: trustedProxiesSetting });
  const right = ['10.0.0.1', '2001:db8::/32', 'linklocal, uniquelocal,10.0.0.0/1', 'loopback'];
  expect(right.filter((PROXIES) => problemsIn({ PROXIES }, of).length > 0)).toEqual([]);
  expect(WRONG_PROXIES.filter((PROXIES) => problemsIn({ PROXIES }, of).length === 0)).toEqual([]);
});
