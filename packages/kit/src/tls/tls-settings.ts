import { z } from 'zod';
import { ConfigError, urlSetting } from '../config.ts';
import { ServiceTls } from './service-tls.ts';
import { readTlsMaterial, type TlsFiles } from './tls-files.ts';

/** Files for TLS between services; all three or none. */
export const serviceTlsSettings = {
  SERVICE_TLS_CERT_FILE: z.string().optional(),
  SERVICE_TLS_KEY_FILE: z.string().optional(),
  SERVICE_TLS_CA_FILE: z.string().optional(),
};

const SCHEMES = new Set(['http:', 'https:']);

/** Where another service answers: `https:` where there is TLS between services, and `http:` where there is none. */
export const serviceUrlSetting = urlSetting('http:', 'https:').refine(
  // What is no URL is told of already.
  (text) => !URL.canParse(text) || !SCHEMES.has(new URL(text).protocol) || isOrigin(new URL(text)),
  'must be http://host:port or https://host:port, and nothing more',
);

function isOrigin({ pathname, search, hash, username, password }: URL): boolean {
  return pathname === '/' && `${search}${hash}${username}${password}` === '';
}

const FILES = Object.keys(serviceTlsSettings) as ReadonlyArray<keyof TlsFiles>;

/**
 * Checks what the settings of TLS say together.
 *
 * @param urlNames settings that are {@link serviceUrlSetting}s
 * @throws ConfigError naming every problem, those of the files included
 */
export function checkServiceTls(env: NodeJS.ProcessEnv, urlNames: readonly string[]): void {
  const set = FILES.filter((name) => env[name]);
  const wanted = set.length > 0 ? 'https:' : 'http:';
  const problems = set.length > 0 ? FILES.filter((name) => !env[name]).map((name) => `${name} is required with ${set[0]}`) : [];
  for (const name of urlNames) {
    const url = env[name] ?? '';
    // What is no such URL at all is told of with the other settings.
    if (!URL.canParse(url) || !SCHEMES.has(new URL(url).protocol) || new URL(url).protocol === wanted) continue;
    const why = set.length > 0 ? 'as SERVICE_TLS_CERT_FILE is set' : 'unless SERVICE_TLS_CERT_FILE is set';
    problems.push(`${name} must start with ${wanted}// ${why}`);
  }
  if (set.length === FILES.length) {
    try {
      readTlsMaterial(env as unknown as TlsFiles);
    } catch (err) {
      if (!(err instanceof ConfigError)) throw err;
      problems.push(err.message);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
}

/** TLS as it is set, or undefined where it is not. Throws ConfigError. */
export function openServiceTls(config: Partial<Record<keyof TlsFiles, string | undefined>>): ServiceTls | undefined {
  const { SERVICE_TLS_CERT_FILE, SERVICE_TLS_KEY_FILE, SERVICE_TLS_CA_FILE } = config;
  if (!SERVICE_TLS_CERT_FILE || !SERVICE_TLS_KEY_FILE || !SERVICE_TLS_CA_FILE) return undefined;
  return new ServiceTls({ SERVICE_TLS_CERT_FILE, SERVICE_TLS_KEY_FILE, SERVICE_TLS_CA_FILE });
}
