import { readFileSync } from 'node:fs';
import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readGatewayConfig, readGatewayProcessConfig } from '@latchkey/gateway/config';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { settingNames } from '@latchkey/kit/config/settings';
import { readMetricsConfig } from '@latchkey/kit/telemetry/settings';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { expect, it } from 'vitest';
import { readSettings, type Shape, settingsWithoutEffect } from './settings.ts';

/** The problems, sorted. */
function problems(env: NodeJS.ProcessEnv, shape: Shape = 'deployed'): string[] {
  try {
    readSettings(env, shape);
  } catch (err) {
    return (err as Error).message.split('\n').toSorted();
  }
  return [];
}

it('names what is wrong for the launcher and all services together, without the values', () => {
  expect([problems({}, 'standalone'), problems({})]).toEqual([[], []]);
  const env = { PORT: 'abc', DATABASE_URL: 'mysql://secret', SECRET_KEY: 'short', MIGRATE_ON_START: 'yes', REALTIME_PORT: '-1' };
  const named = problems(env).map((problem) => problem.split(' ')[0]);
  expect(named).toEqual(['DATABASE_URL', 'MIGRATE_ON_START', 'PORT', 'REALTIME_PORT', 'SECRET_KEY']);
  expect(problems(env).join()).not.toMatch(/abc|mysql|short|yes/);
  expect(problems({ PORT: '18080', REALTIME_PORT: '18080' })).toEqual([
    'PORT (8080 unless set) and REALTIME_PORT (8081 unless set) must differ, and both are 18080',
  ]);
  expect(problems({ METRICS_PORT: '8080', METRICS_TOKEN: 'a'.repeat(32) })).toEqual([
    'METRICS_PORT must differ from PORT and REALTIME_PORT',
  ]);
});

it('listens on this machine only, unless a public URL or an address is set', () => {
  const PROVIDED = {
    ...{ REDIS_URL: 'redis://a', SERVICE_CREDENTIALS: 'a'.repeat(32), METRICS_PORT: '1', METRICS_TOKEN: 'b'.repeat(32) },
    ...{
      APPS_URL: 'http://a',
      IDENTITY_URL: 'http://a',
      FILES_URL: 'http://a',
      DATABASE_URL: 'postgres://a',
      SECRET_KEY: 'c'.repeat(32),
    },
  };
  const hosts = (given: NodeJS.ProcessEnv) => {
    const env = { ...PROVIDED, ...given };
    const { HOST: internal, REALTIME_HOST } = readRealtimeProcessConfig(env);
    return [
      ...[readSettings(given, 'standalone').HOST, readSettings(given, 'deployed').HOST],
      ...[readGatewayConfig(env).HOST, readGatewayProcessConfig(env).HOST, REALTIME_HOST],
      ...[internal, readAppsProcessConfig(env).HOST, readMetricsConfig(env)?.host],
    ];
  };
  const [own, all] = ['127.0.0.1', '0.0.0.0'];
  expect(hosts({})).toEqual([own, own, own, own, own, own, own, own]);
  expect(hosts({ PUBLIC_URL: 'http://[::1]:80' })).toEqual(['::1', '::1', '::1', '::1', own, own, own, own]);
  const urls = { PUBLIC_URL: 'https://panel.example', PUBLIC_REALTIME_URL: 'wss://live.example' };
  expect(hosts(urls)).toEqual([all, all, all, all, all, own, own, own]);
  expect(hosts({ HOST: all, REALTIME_HOST: all })).toEqual([all, all, all, all, all, all, all, all]);
  expect(hosts({ ...urls, HOST: own, REALTIME_HOST: own })).toEqual([own, own, own, own, own, own, own, own]);
});

it('rejects TLS between services of one machine, and names settings without effect in one process', () => {
  expect(problems({ SERVICE_TLS_CERT_FILE: '/nope', SERVICE_TLS_CA_FILE: '/nope' })).toEqual([
    'SERVICE_TLS_CA_FILE must not be set with --deployed: there the services call one another in clear, on this machine only',
    'SERVICE_TLS_CERT_FILE must not be set with --deployed: there the services call one another in clear, on this machine only',
  ]);
  const env = { MIGRATE_ON_START: '', SERVICE_TLS_CA_FILE: '/ca.crt' };
  expect(settingsWithoutEffect(env, 'standalone')).toEqual(['SERVICE_TLS_CA_FILE']);
  expect(settingsWithoutEffect(env, 'deployed')).toEqual([]);
});

it('docs/settings.md names the settings that are read, and no others', () => {
  for (const shape of ['standalone', 'deployed'] as const) readSettings({}, shape);
  const text = readFileSync(new URL('../../../docs/settings.md', import.meta.url), 'utf8');
  const named = (part: string) => [...part.matchAll(/`([A-Z][A-Z_0-9]+)`/g)].map(([, name]) => name as string);
  const inTables = named(text.replaceAll(/^(?!\|).*$/gm, '').replaceAll(/^(\|[^|]*\|).*$/gm, '$1'));
  expect(inTables.filter((name) => !settingNames.has(name))).toEqual([]);
  const traces = /^OTEL_/; // all of them are one row
  expect([...settingNames].filter((name) => !traces.test(name) && !named(text).includes(name))).toEqual([]);
});

it.each(['standalone', 'deployed'] as const)('warns of misspelt settings only, without the value: %s', (shape) => {
  readSettings({}, shape);
  const lines: string[] = [];
  const misspelt = { SIGNUP: 'hidden', PUBLIC_ULR: 'hidden', DATADIR: 'hidden' };
  const others = [
    ...['HOME', 'PATH', 'USER', 'LANG', 'TERM', 'HOSTNAME', 'PGHOST', 'PGPORT', 'npm_config_port', 'npm_package_name'],
    ...['REDIS_PORT', 'OTEL_BLRP_MAX_QUEUE_SIZE', 'OTEL_METRICS_EXPORTER', 'OTEL_LOGS_EXPORTER', 'AWS_ACCESS_KEY_ID'],
  ];
  const env = { ...process.env, ...Object.fromEntries(others.map((name) => [name, 'x'])), ...misspelt };
  warnOfMisspelt(env, (line) => lines.push(line));
  const meant = { SIGNUP: 'SIGN_UP', PUBLIC_ULR: 'PUBLIC_URL', DATADIR: 'DATA_DIR' };
  const expected = Object.entries(meant).map(
    ([name, setting]) => `${name} is not a setting and has no effect. Did you mean ${setting}?`,
  );
  expect(lines.toSorted()).toEqual(expected.toSorted());
});
