import { z } from 'zod';
import { ConfigError, readTogether, urlSetting } from '../config/settings.ts';
import { ServiceTls, type TlsPaths } from './service-tls.ts';

/** Files for TLS between services; all three or none. */
export const serviceTlsSettings = {
  SERVICE_TLS_CERT_FILE: z.string().optional(),
  SERVICE_TLS_KEY_FILE: z.string().optional(),
  SERVICE_TLS_CA_FILE: z.string().optional(),
};

const NAMES = Object.keys(serviceTlsSettings) as ReadonlyArray<keyof TlsPaths>;

const SCHEMES = new Set(['http:', 'https:']);

/** Origin of another service: `https:` where there is TLS between services, else `http:`. */
export const serviceUrlSetting = urlSetting(...SCHEMES).refine((text) => {
  const url = URL.parse(text);
  // Other schemes have been reported already.
  return !url || !SCHEMES.has(url.protocol) || url.href === `${url.origin}/`;
}, 'must be http://host:port or https://host:port, and nothing more');

/**
 * Checks that the settings of TLS agree, and the files.
 *
 * @param urlNames settings that are {@link serviceUrlSetting}s
 * @throws ConfigError naming every problem
 */
export function checkServiceTls(env: NodeJS.ProcessEnv, urlNames: readonly string[]): void {
  const first = NAMES.find((name) => env[name]);
  const [wanted, other, why] = first ? ['https:', 'http:', 'as'] : ['http:', 'https:', 'unless'];
  const problems = NAMES.filter((name) => first && !env[name]).map((name) => `${name} is required with ${first}`);
  for (const name of urlNames) {
    if (URL.parse(env[name] ?? '')?.protocol !== other) continue;
    problems.push(`${name} must start with ${wanted}// ${why} SERVICE_TLS_CERT_FILE is set`);
  }
  readTogether(
    () => {
      if (problems.length > 0) throw new ConfigError(...problems);
    },
    () => openServiceTls(env as Partial<TlsPaths>),
  );
}

/** TLS as it is set, or undefined. Throws ConfigError. */
export function openServiceTls(config: Partial<Record<keyof TlsPaths, string | undefined>>): ServiceTls | undefined {
  return NAMES.every((name) => config[name]) ? new ServiceTls(config as TlsPaths) : undefined;
}
