import { settingNames } from '@latchkey/kit/config';
import { warnOfMisspelt } from '@latchkey/kit/misspelt-settings';
import { describe, expect, it } from 'vitest';
import { readSettings, settingsWithoutEffect } from './settings.ts';

/** What is wrong, sorted. */
function problems(env: NodeJS.ProcessEnv, shape: 'standalone' | 'deployed' = 'deployed'): string[] {
  try {
    readSettings(env, shape);
  } catch (err) {
    return (err as Error).message.split('\n').toSorted();
  }
  return [];
}

it('takes nothing but defaults, in either shape', () => {
  expect([problems({}, 'standalone'), problems({})]).toEqual([[], []]);
});

it('names what is wrong for services of their own with everything else, before any is started', () => {
  const env = { PORT: 'abc', CONNECTIONS_PER_IP: '0', MIGRATE_ON_START: 'yes' };
  expect(problems(env)).toEqual([
    'CONNECTIONS_PER_IP must be a whole number from 1 to 1000000',
    'MIGRATE_ON_START must be true or false',
    'PORT must be a whole number from 0 to 65535',
  ]);
});

it('says that services of one machine are not called over TLS', () => {
  expect(problems({ SERVICE_TLS_CERT_FILE: '/nope', SERVICE_TLS_CA_FILE: '/nope' })).toEqual([
    'SERVICE_TLS_CA_FILE must not be set with --deployed: there the services call one another in clear, on this machine only',
    'SERVICE_TLS_CERT_FILE must not be set with --deployed: there the services call one another in clear, on this machine only',
  ]);
});

it('names the settings between services that a shape has no use for', () => {
  const env = { MIGRATE_ON_START: '', SERVICE_TLS_CA_FILE: '/ca.crt' };
  expect(settingsWithoutEffect(env, 'standalone')).toEqual(['SERVICE_TLS_CA_FILE']);
  expect(settingsWithoutEffect(env, 'deployed')).toEqual([]);
});

describe('misspelt settings', () => {
  const warnings = (env: NodeJS.ProcessEnv, shape: 'standalone' | 'deployed' = 'deployed') => {
    readSettings({}, shape);
    const lines: string[] = [];
    warnOfMisspelt(env, (line) => lines.push(line));
    return lines;
  };

  it.each([
    ['SIGNUP', 'SIGN_UP'],
    ['PUBLIC_ULR', 'PUBLIC_URL'],
    ['RATELIMIT_IP_PERMINUTE', 'RATE_LIMIT_IP_PER_MINUTE'],
    ['PROT', 'PORT'],
    ['DATADIR', 'DATA_DIR'],
    ['METRIC_PORT', 'METRICS_PORT'],
  ])('names %s and what was meant, in either shape, and never the value', (name, meant) => {
    for (const shape of ['standalone', 'deployed'] as const) {
      expect(warnings({ [name]: 'hidden' }, shape)).toEqual([
        `${name} is not a setting and has no effect. Did you mean ${meant}?`,
      ]);
    }
  });

  it('are told apart from what shells, npm, PostgreSQL and others set', () => {
    const others = [
      'HOME',
      'PATH',
      'USER',
      'LANG',
      'TERM',
      'HOSTNAME',
      'PGHOST',
      'PGPORT',
      'npm_config_port',
      'npm_package_name',
      'REDIS_PORT',
    ];
    const telemetry = ['OTEL_BLRP_MAX_QUEUE_SIZE', 'OTEL_METRICS_EXPORTER', 'OTEL_LOGS_EXPORTER', 'AWS_ACCESS_KEY_ID'];
    const env = Object.fromEntries([...others, ...telemetry].map((name) => [name, 'x']));
    expect(warnings({ ...process.env, ...env })).toEqual([]);
  });

  it('are no settings of another service, which may be set for all processes', () => {
    readSettings({}, 'deployed');
    const near = [...settingNames].flatMap((name) => {
      const others = new Set([...settingNames].filter((other) => other !== name));
      return warnOfMisspelt({ [name]: 'x' }, () => {}, others);
    });
    // A process reads both of each pair, or neither.
    expect(near).toEqual(['REALTIME_HOST', 'REALTIME_PORT']);
  });
});
