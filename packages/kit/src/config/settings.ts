import { isIP } from 'node:net';
import { z } from 'zod';

/** Thrown by {@link readConfig}; its message names every problem, one a line, and never a value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  constructor(...problems: readonly string[]) {
    super([...new Set(problems)].join('\n'));
  }
}

export const settingNames = new Set<string>();

/**
 * Reads settings from environment variables; an empty one is not set. Throws ConfigError, which
 * names all missing and wrong ones together.
 */
export function readConfig<T extends z.ZodObject>(schema: T, env: NodeJS.ProcessEnv): z.output<T> {
  const names = Object.keys(schema.shape);
  for (const name of names) settingNames.add(name);
  const given = Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path: [name], code, message }) => {
    if (typeof name !== 'string') return message;
    return Object.hasOwn(given, name) || code === 'custom' ? `${name} ${message}` : `${name} is required`;
  });
  throw new ConfigError(...problems);
}

/** Calls several readers of settings. Throws ConfigError with the problems of all of them. */
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
  if (problems.length > 0) throw new ConfigError(...problems);
  return read as unknown as T;
}

export function integerSetting(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((n) => n >= min && n <= max, message);
}

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

const PROXY_RANGES = new Set(['loopback', 'linklocal', 'uniquelocal']);

function isProxy(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0) return PROXY_RANGES.has(text);
  // A range of all addresses would let every client choose its own.
  const isRange = /^\d{1,3}$/.test(bits ?? '') && Number(bits) >= 1 && Number(bits) <= (family === 4 ? 32 : 128);
  return rest.length === 0 && (bits === undefined || isRange);
}

/** Proxies whose `X-Forwarded-For` is trusted: addresses, ranges, or names of ranges. */
export const trustedProxiesSetting = listSetting
  .refine((list) => list.every(isProxy), 'must list addresses, ranges like 10.0.0.0/8, or loopback, linklocal, uniquelocal')
  .default([]);

export const secretSetting = z.string().min(32, 'must have at least 32 characters');

export const logLevelSetting = z.enum(
  ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
  'must be one of fatal, error, warn, info, debug, trace, silent',
);

/** A secret that is sent in a header, which carries no other characters and loses outer blanks. */
export const headerSecretSetting = secretSetting.regex(/^[\x21-\x7e]*$/, 'must be of printable ASCII characters, without blanks');

/** Credentials between services: the first is sent, either is accepted (docs/settings.md). */
export const serviceCredentialsSetting = listSetting
  .refine(({ length }) => length === 1 || length === 2, 'must hold one or two credentials')
  .pipe(z.tuple([headerSecretSetting], headerSecretSetting));
