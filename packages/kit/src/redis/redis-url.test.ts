import { expect, it } from 'vitest';
import { parseClusterUrl, parseRedisUrl, redisHosts, redisSettings, redisUrlSetting } from './redis-url.ts';

it('reads the sentinels, the primary, and the users and TLS of both', () => {
  const url = 'rediss+sentinel://app:p%40ss@one,[::1]:5000/my%20primary/2?sentinel_username=watch&sentinel_password=w%26rd';
  expect(parseRedisUrl(url)).toEqual({
    sentinels: [
      { host: 'one', port: 26_379 },
      { host: '::1', port: 5_000 },
    ],
    name: 'my primary',
    db: 2,
    ...{ username: 'app', password: 'p@ss', sentinelUsername: 'watch', sentinelPassword: 'w&rd' },
    ...{ tls: {}, enableTLSForSentinelMode: true, sentinelTLS: {}, sentinelCommandTimeout: 1_000 },
  });
  expect(parseRedisUrl(`${url}&sentinel_tls=false`)).not.toHaveProperty('sentinelTLS');
  expect(parseRedisUrl('redis+sentinel://one/name')).not.toHaveProperty('tls');
  expect(redisHosts(url)).toBe('one,[::1]:5000');
});

it('reads the nodes of a cluster, which only limits may use', () => {
  const url = 'rediss+cluster://app:p%40ss@one,[::1]:5000';
  expect(parseClusterUrl(url)).toEqual({
    nodes: [
      { host: 'one', port: 6_379 },
      { host: '::1', port: 5_000 },
    ],
    redisOptions: { username: 'app', password: 'p@ss', tls: {} },
  });
  expect(redisHosts(url)).toBe('one,[::1]:5000');
  const { REDIS_LIMITS_URL, ...others } = redisSettings;
  expect(REDIS_LIMITS_URL.safeParse(url).success).toBe(true);
  for (const setting of Object.values(others)) expect(setting.safeParse(url).success).toBe(false);
  expect(REDIS_LIMITS_URL.safeParse('redis+cluster://:%zz@one').success).toBe(false);
});

it.each([
  ['redis://localhost:6379/1', true],
  ['rediss://:password@[::1]', true],
  ['redis+sentinel://one:26379,two/name', true],
  ['redis+sentinel://one:26379,two/', false],
  ['redis+sentinel://one:99999/name', false],
  ['redis+sentinel:///name', false],
  ['redis+sentinel://one,,two/name', false],
  ['redis+sentinel://:%zz@one/name', false],
  ['redis://localhost:6379/name', false],
  ['redis://:%zz@localhost', false],
  ['http://localhost', false],
  ['redis', false],
])('%s is a URL of Redis: %s', (url, isUrl) => {
  expect(redisUrlSetting.safeParse(url).success).toBe(isUrl);
});
