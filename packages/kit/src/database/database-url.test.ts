import { expect, it } from 'vitest';
import { databaseHosts, databaseUrlSetting, splitDatabaseUrl } from './database-url.ts';

it('a URL of several hosts is one URL for each', () => {
  const url = 'postgresql://app:a%40b@one:5433,[::1],two/shop?target_session_attrs=read-write&sslmode=verify-full';
  const end = '/shop?target_session_attrs=read-write&sslmode=verify-full';
  expect(splitDatabaseUrl(url)).toEqual(['one:5433', '[::1]', 'two'].map((host) => `postgresql://app:a%40b@${host}${end}`));
  expect(databaseHosts(url)).toBe('one:5433,[::1],two');
  expect(databaseHosts('postgres://one/shop')).toBe('one');
});

it.each([
  ['postgres://u:p@one/shop', true],
  ['postgres:///shop?host=/run/postgresql', true],
  ['postgres://one,two:5433/shop?target_session_attrs=primary', true],
  ['postgres://one,two/shop?target_session_attrs=read-only', false],
  ['postgres://one,two:x/shop', false],
  ['postgres://one,two:99999/shop', false],
  ['http://one/shop', false],
])('%s is the URL of a database that accepts writes: %s', (url, isUrl) => {
  expect(databaseUrlSetting.safeParse(url).success).toBe(isUrl);
});
