import { isIP } from 'node:net';
import { z } from 'zod';

/** Thrown by {@link readConfig}; its message names every problem, one a line, and never a value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The names of all settings that this process has read, set or not. */
export const settingNames = new Set<string>();

/**
 * Reads settings from environment variables.
 *
 * @param schema one property per variable; an empty string counts as not set
 * @throws ConfigError naming all missing and wrong variables at once (decisions 12)
 */
export function readConfig<T extends z.ZodObject>(schema: T, env: NodeJS.ProcessEnv): z.output<T> {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    settingNames.add(name);
    const value = env[name];
    if (value !== undefined && value !== '') given[name] = value;
  }
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    const name = issue.path[0];
    if (typeof name !== 'string') return issue.message;
    return Object.hasOwn(given, name) || issue.code === 'custom' ? `${name} ${issue.message}` : `${name} is required`;
  });
  throw new ConfigError([...new Set(problems)].join('\n'));
}

/**
 * Reads settings of several kinds.
 *
 * @throws ConfigError naming the problems of all of them
 */
export function readTogether<T extends readonly unknown[]>(...readers: { [K in keyof T]: () => T[K] }): T {
  const problems: string[] = [];
  const read = readers.map((reader) => {
    try {
      return reader();
    } catch (err) {
      if (!(err instanceof ConfigError)) throw err;
      problems.push(...err.message.split('\n'));
      return undefined;
    }
  });
  if (problems.length > 0) throw new ConfigError([...new Set(problems)].join('\n'));
  return read as unknown as T;
}

/** A whole number written in decimal, within bounds. */
export function integerSetting(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((n) => n >= min && n <= max, `must be a whole number from ${min} to ${max}`);
}

/** A TCP port; 0 lets the system choose one. */
export const portSetting = integerSetting(0, 65_535);

/** An absolute URL with one of the given schemes, such as `postgres:`. */
export function urlSetting(...protocols: string[]) {
  return z
    .string()
    .refine(
      (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol),
      `must be a URL that starts with ${protocols.map((p) => `${p}//`).join(' or ')}`,
    );
}

/** Comma-separated text as a list, blanks dropped. */
export const listSetting = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

/** Names that stand for ranges of addresses (docs/settings.md). */
const PROXY_RANGES = new Set(['loopback', 'linklocal', 'uniquelocal']);

function isProxy(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  if (rest.length > 0) return false;
  const family = isIP(address);
  if (family === 0) return PROXY_RANGES.has(text);
  if (bits === undefined) return true;
  // A range of all addresses would let every client name its own.
  return /^\d{1,3}$/.test(bits) && Number(bits) >= 1 && Number(bits) <= (family === 4 ? 32 : 128);
}

/** Proxies whose `X-Forwarded-For` is believed: addresses, ranges of them, or names of ranges; none unless set. */
export const trustedProxiesSetting = listSetting
  .refine((list) => list.every(isProxy), 'must list addresses, ranges like 10.0.0.0/8, or loopback, linklocal, uniquelocal')
  .default([]);

/** A secret long enough to derive keys from. */
export const secretSetting = z.string().min(32, 'must have at least 32 characters');

/** pino's levels. */
export const logLevelSetting = z.enum(
  ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
  'must be one of fatal, error, warn, info, debug, trace, silent',
);

/** A secret that goes with a header: what no header carries would be found out by the first call, and blanks at its ends would be lost on the way. */
export const headerSecretSetting = secretSetting.regex(/^[\x21-\x7e]*$/, 'must be of printable ASCII characters, without blanks');

/** The credentials that services show one another: the first is sent, either is accepted (docs/settings.md). */
export const serviceCredentialsSetting = listSetting.pipe(
  z.tuple([headerSecretSetting], headerSecretSetting).check(z.maxLength(2, 'must hold one or two credentials')),
);
