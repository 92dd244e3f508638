import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError, readTogether } from '../config/settings.ts';
import type { Logger } from '../log/logger.ts';

/** Paths of PEM files: the certificate chain and key of a process, and its peers' authorities. */
export type TlsPaths = Readonly<Record<'SERVICE_TLS_CERT_FILE' | 'SERVICE_TLS_KEY_FILE' | 'SERVICE_TLS_CA_FILE', string>>;

type TlsFiles = Readonly<Record<'cert' | 'key' | 'ca', string>>;

/** Interval of reads of the files, in milliseconds. Watching them would miss remounted volumes. */
const READ_INTERVAL_MS = 5_000;

/** The certificate of a process for other services, and the authorities that it trusts. */
export class ServiceTls {
  readonly #paths: TlsPaths;
  readonly #listeners = new Set<() => void>();
  files: TlsFiles;
  /** For new connections. */
  context: SecureContext;
  #problem = '';
  #timer: NodeJS.Timeout | undefined;

  /** @throws ConfigError naming every problem of the files */
  constructor(paths: TlsPaths) {
    this.#paths = paths;
    this.files = readFiles(paths);
    this.context = createContext(this.files);
  }

  /** Calls back whenever the files have changed. Returns a function that unsubscribes. */
  onRenewal(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reads the files every few seconds, so that certificates are renewed without a restart. */
  watch(logger: Logger): void {
    logger.info({ validTo: new X509Certificate(this.files.cert).validToDate }, 'service certificate');
    this.#timer = setInterval(() => this.reload(logger), READ_INTERVAL_MS).unref();
  }

  /** Uses the current files unless they are invalid, as while only one has been replaced. */
  reload(logger: Logger): void {
    try {
      const files = readFiles(this.#paths);
      if (JSON.stringify(files) !== JSON.stringify(this.files)) {
        this.context = createContext(files);
        this.files = files;
        for (const listener of this.#listeners) listener();
        logger.info({ validTo: new X509Certificate(files.cert).validToDate }, 'service certificate changed');
      }
      this.#problem = '';
    } catch (err) {
      const { message } = err as Error;
      if (message !== this.#problem) logger.error({ problem: message }, 'service certificate invalid, the old one stays');
      this.#problem = message;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function readFiles(paths: TlsPaths): TlsFiles {
  const reader = (name: keyof TlsPaths) => () => {
    try {
      return readFileSync(paths[name], 'utf8');
    } catch (err) {
      throw new ConfigError(`${name} can't be read (${(err as NodeJS.ErrnoException).code})`);
    }
  };
  const names = ['SERVICE_TLS_CERT_FILE', 'SERVICE_TLS_KEY_FILE', 'SERVICE_TLS_CA_FILE'] as const;
  const [cert = '', key = '', ca = ''] = readTogether(...names.map(reader));
  return { cert, key, ca };
}

/** OpenSSL checks that the key belongs to the certificate; peers check the rest. */
function createContext(files: TlsFiles): SecureContext {
  const { validToDate } = parse('SERVICE_TLS_CERT_FILE', () => new X509Certificate(files.cert));
  if (validToDate <= new Date()) {
    throw new ConfigError(`SERVICE_TLS_CERT_FILE holds a certificate that has expired (${validToDate.toISOString()})`);
  }
  parse('SERVICE_TLS_CA_FILE', () => new X509Certificate(files.ca));
  return parse('SERVICE_TLS_KEY_FILE', () => createSecureContext({ ...files }));
}

function parse<T>(name: keyof TlsPaths, read: () => T): T {
  try {
    return read();
  } catch (err) {
    throw new ConfigError(`${name} is invalid: ${(err as Error).message}`);
  }
}
