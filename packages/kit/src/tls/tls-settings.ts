import { z } from 'zod';
import { ConfigError, readTogether, urlSetting } from '../config/settings.ts';
import { ServiceTls, type TlsPaths } from './service-tls.ts';

/** Files for TLS between services; all three or none. */
export const serviceTlsSettings = {
  SERVICE_TLS_CERT_FILE: z.string().optional(),
  SERVICE_TLS_KEY_FILE: z.string().optional(),
  SERVICE_TLS_CA_FILE: z.string().optional(),
};

const SCHEMES = new Set(['http:', 'https:']);

/** Origin of another service: `https:` where there is TLS between services, else `http:`. */
export const serviceUrlSetting = urlSetting('http:', 'https:').refine(
  // What is no such URL has been reported already.
  (text) => !SCHEMES.has(URL.parse(text)?.protocol ?? '') || isOrigin(new URL(text)),
  'must be http://host:port or https://host:port, and nothing more',
);

function isOrigin({ pathname, search, hash, username, password }: URL): boolean {
  return pathname === '/' && `${search}${hash}${username}${password}` === '';
}

const NAMES = Object.keys(serviceTlsSettings) as ReadonlyArray<keyof TlsPaths>;

/**
 * Checks that the settings of TLS agree, and the files.
 *
 * @param urlNames settings that are {@link serviceUrlSetting}s
 * @throws ConfigError naming every problem
 */
export function checkServiceTls(env: NodeJS.ProcessEnv, urlNames: readonly string[]): void {
  const set = NAMES.filter((name) => env[name]);
  const isOn = set.length > 0;
  const wanted = isOn ? 'https:' : 'http:';
  const problems = isOn ? NAMES.filter((name) => !env[name]).map((name) => `${name} is required with ${set[0]}`) : [];
  for (const name of urlNames) {
    const { protocol = '' } = URL.parse(env[name] ?? '') ?? {};
    if (!SCHEMES.has(protocol) || protocol === wanted) continue;
    problems.push(`${name} must start with ${wanted}// ${isOn ? 'as' : 'unless'} SERVICE_TLS_CERT_FILE is set`);
  }
  readTogether(
    () => {
      if (problems.length > 0) throw new ConfigError(problems.join('\n'));
    },
    () => openServiceTls(env as Partial<TlsPaths>),
  );
}

/** TLS as it is set, or undefined. Throws ConfigError. */
export function openServiceTls(config: Partial<Record<keyof TlsPaths, string | undefined>>): ServiceTls | undefined {
  const { SERVICE_TLS_CERT_FILE, SERVICE_TLS_KEY_FILE, SERVICE_TLS_CA_FILE } = config;
  if (!SERVICE_TLS_CERT_FILE || !SERVICE_TLS_KEY_FILE || !SERVICE_TLS_CA_FILE) return undefined;
  return new ServiceTls({ SERVICE_TLS_CERT_FILE, SERVICE_TLS_KEY_FILE, SERVICE_TLS_CA_FILE });
}
