import type { RedisOptions } from 'ioredis';
import { z } from 'zod';

const SENTINEL = /^(rediss?)\+sentinel:\/\/(?:([^/?#]*)@)?([^/?#@,]+(?:,[^/?#@,]+)*)\/([^/?#]+)(?:\/(\d+))?(?:\?(.*))?$/s;
const SENTINEL_PORT = 26_379;
const REDIS_PORT = 6_379;
const CLUSTER = /^(rediss?)\+cluster:\/\/(?:([^/?#]*)@)?([^/?#@,]+(?:,[^/?#@,]+)*)\/?$/s;

/**
 * The connection that a Redis URL describes. A URL of sentinels names the primary that they watch:
 * `redis+sentinel://user:password@first:26379,second:26379/name/0?sentinel_password=…`.
 * `rediss+sentinel` uses TLS for both; `sentinel_tls` overrides it for the sentinels.
 */
export function parseRedisUrl(text: string): Omit<RedisOptions, 'replyMapping'> | undefined {
  const [, scheme, user = '', hosts, name, db, query] = SENTINEL.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  const parameters = new URLSearchParams(query);
  const hasTls = scheme === 'rediss';
  const texts = {
    ...parseUser(user),
    sentinelUsername: parameters.get('sentinel_username') ?? '',
    sentinelPassword: parameters.get('sentinel_password') ?? '',
  };
  return {
    ...withoutEmpty(texts),
    sentinels: parseHosts(`${hosts}`, SENTINEL_PORT),
    name: decodeURIComponent(`${name}`),
    db: Number(db ?? 0),
    sentinelCommandTimeout: 1_000,
    ...(hasTls && { tls: {}, enableTLSForSentinelMode: true }),
    ...((parameters.get('sentinel_tls') ?? `${hasTls}`) === 'true' && { sentinelTLS: {} }),
  };
}

/**
 * Nodes and users of `redis+cluster://user:password@first:6379,second:6379`, or with TLS of
 * `rediss+cluster`.
 */
export function parseClusterUrl(text: string) {
  const [, scheme, user = '', hosts] = CLUSTER.exec(text) ?? [];
  if (scheme === undefined) return undefined;
  return {
    nodes: parseHosts(`${hosts}`, REDIS_PORT),
    redisOptions: { ...withoutEmpty(parseUser(user)), ...(scheme === 'rediss' && { tls: {} }) },
  };
}

function parseHosts(text: string, defaultPort: number) {
  const urls = text.split(',').map((host) => new URL(`redis://${host}`));
  return urls.map(({ hostname, port }) => ({ host: hostname.replace(/[[\]]/g, ''), port: Number(port || defaultPort) }));
}

function parseUser(text: string) {
  const { username, password } = new URL(`redis://${text}@x`);
  return { username: decodeURIComponent(username), password: decodeURIComponent(password) };
}

const withoutEmpty = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== ''));

/** Hosts and ports of a Redis URL, for messages: without user and password. */
export const redisHosts = (text: string): string => (SENTINEL.exec(text) ?? CLUSTER.exec(text))?.[3] ?? new URL(text).host;

/** The servers that a Redis URL names, and whether it uses TLS for them. */
export function namedServers(text: string) {
  const { sentinels, sentinelTLS } = parseRedisUrl(text) ?? {};
  const servers = sentinels ?? parseClusterUrl(text)?.nodes ?? parseHosts(new URL(text).host, REDIS_PORT);
  const hasTls = sentinels ? sentinelTLS !== undefined : text.startsWith('rediss');
  return servers.map(({ host = '', port }) => ({ host, port: Number(port), hasTls }));
}

function canParse(text: string, parse: (text: string) => unknown): boolean {
  try {
    return parse(text) !== undefined;
  } catch {
    return false;
  }
}

/** ioredis fails on a password that can't be decoded, and on a database that isn't a number. */
function parsePlainUrl(text: string) {
  const { protocol, pathname, href } = new URL(text);
  return /^rediss?:$/.test(protocol) && /^\/?\d*$/.test(pathname) ? decodeURIComponent(href) : undefined;
}

const isRedisUrl = (text: string) => canParse(text, parseRedisUrl) || canParse(text, parsePlainUrl);

export const redisUrlSetting = z
  .string()
  .refine(
    isRedisUrl,
    'must be a URL that starts with redis:// or rediss:// and ends with no path or /<number>, or redis+sentinel:// with the name of a primary',
  );

/** A Redis for everything, and others for limits, queues and events. */
export const redisSettings = {
  REDIS_URL: redisUrlSetting,
  REDIS_LIMITS_URL: z
    .string()
    .refine((text) => isRedisUrl(text) || canParse(text, parseClusterUrl), 'must be as REDIS_URL, or start with redis+cluster://')
    .optional(),
  REDIS_QUEUES_URL: redisUrlSetting.optional(),
  REDIS_EVENTS_URL: redisUrlSetting.optional(),
};

export type RedisConfig = z.output<z.ZodObject<typeof redisSettings>>;

/** Redis URLs by use. Limits include the epochs of credentials. Events are only broadcast. */
export function redisUrls({ REDIS_URL: common, REDIS_LIMITS_URL, REDIS_QUEUES_URL, REDIS_EVENTS_URL }: RedisConfig) {
  return { limits: REDIS_LIMITS_URL ?? common, queues: REDIS_QUEUES_URL ?? common, events: REDIS_EVENTS_URL ?? common };
}

/** The names and values of the Redis settings that are set. */
export function givenRedisUrls(
  config: { readonly [K in keyof RedisConfig]?: string | undefined },
): Array<readonly [setting: string, url: string]> {
  const names = Object.keys(redisSettings) as Array<keyof RedisConfig>;
  return names.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]] as const]));
}
