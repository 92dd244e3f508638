import type { RedisOptions } from 'ioredis';
import { z } from 'zod';

const SENTINEL = /^(rediss?)\+sentinel:\/\/(?:([^/?#]*)@)?([^/?#@,]+(?:,[^/?#@,]+)*)\/([^/?#]+)(?:\/(\d+))?(?:\?(.*))?$/s;
const SENTINEL_PORT = 26_379;

/**
 * The connection that a Redis URL describes. A URL of sentinels names the primary that they watch:
 * `redis+sentinel://user:password@first:26379,second:26379/name/0?sentinel_password=…`.
 * `rediss+sentinel` uses TLS for both; `sentinel_tls` overrides it for the sentinels.
 */
export function parseRedisUrl(text: string): Omit<RedisOptions, 'replyMapping'> | undefined {
  const [, scheme, user = '', hosts, name, db, query] = SENTINEL.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  const sentinels = `${hosts}`.split(',').map((host) => new URL(`redis://${host}`));
  const parameters = new URLSearchParams(query);
  const { username, password } = new URL(`redis://${user}@x`);
  const hasTls = scheme === 'rediss';
  const texts = {
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    sentinelUsername: parameters.get('sentinel_username') ?? '',
    sentinelPassword: parameters.get('sentinel_password') ?? '',
  };
  return {
    ...Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== '')),
    sentinels: sentinels.map(({ hostname, port }) => ({
      host: hostname.replace(/[[\]]/g, ''),
      port: Number(port || SENTINEL_PORT),
    })),
    name: decodeURIComponent(`${name}`),
    db: Number(db ?? 0),
    sentinelCommandTimeout: 1_000,
    ...(hasTls && { tls: {}, enableTLSForSentinelMode: true }),
    ...((parameters.get('sentinel_tls') ?? `${hasTls}`) === 'true' && { sentinelTLS: {} }),
  };
}

/** Hosts and ports of a Redis URL, for messages: without user and password. */
export const redisHosts = (text: string): string => SENTINEL.exec(text)?.[3] ?? new URL(text).host;

function isRedisUrl(text: string): boolean {
  if (!SENTINEL.test(text)) return URL.canParse(text) && ['redis:', 'rediss:'].includes(new URL(text).protocol);
  try {
    return parseRedisUrl(text) !== undefined;
  } catch {
    return false;
  }
}

export const redisUrlSetting = z
  .string()
  .refine(isRedisUrl, 'must be a URL that starts with redis:// or rediss://, or redis+sentinel:// with the name of a primary');
