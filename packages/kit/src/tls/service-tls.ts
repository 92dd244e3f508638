import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';
import { ConfigError } from '../config/settings.ts';
import type { Logger } from '../log/logger.ts';

/** Paths of PEM files: the certificate of a process with its chain, its key, and the authorities of its peers. */
export interface TlsPaths {
  readonly SERVICE_TLS_CERT_FILE: string;
  readonly SERVICE_TLS_KEY_FILE: string;
  readonly SERVICE_TLS_CA_FILE: string;
}

/** What the files hold. */
interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** How often the files are read, in milliseconds. Watching them would miss volumes that are mounted anew. */
const READ_INTERVAL_MS = 5_000;

/** The certificate with which a process proves itself to other services, and the authorities that it trusts. */
export class ServiceTls {
  readonly #paths: TlsPaths;
  readonly #listeners = new Set<() => void>();
  #files: TlsFiles;
  #context: SecureContext;
  #problem = '';
  #timer: NodeJS.Timeout | undefined;

  /** @throws ConfigError naming every problem of the files */
  constructor(paths: TlsPaths) {
    this.#paths = paths;
    this.#files = readFiles(paths);
    this.#context = createContext(this.#files);
  }

  get files(): TlsFiles {
    return this.#files;
  }

  /** For connections that are opened now. */
  get context(): SecureContext {
    return this.#context;
  }

  /** Calls back whenever the files have changed. Returns a function that ends this. */
  onRenewal(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reads the files again every few seconds until it is closed, so that certificates are renewed without a stop. */
  watch(logger: Logger): void {
    logger.info({ validTo: new X509Certificate(this.#files.cert).validToDate }, 'service certificate');
    this.#timer = setInterval(() => this.reload(logger), READ_INTERVAL_MS).unref();
  }

  /** Uses what the files hold now, unless it is invalid, as while only one of them has been replaced. */
  reload(logger: Logger): void {
    try {
      const files = readFiles(this.#paths);
      const { cert, key, ca } = this.#files;
      if (files.cert !== cert || files.key !== key || files.ca !== ca) {
        this.#context = createContext(files);
        this.#files = files;
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
  const problems: string[] = [];
  const read = (name: keyof TlsPaths) => {
    try {
      return readFileSync(paths[name], 'utf8');
    } catch (err) {
      problems.push(`${name} can't be read (${(err as NodeJS.ErrnoException).code})`);
      return '';
    }
  };
  const files = { cert: read('SERVICE_TLS_CERT_FILE'), key: read('SERVICE_TLS_KEY_FILE'), ca: read('SERVICE_TLS_CA_FILE') };
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return files;
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
