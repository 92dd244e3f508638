import { createSecureContext, type SecureContext } from 'node:tls';
import type { Logger } from '../logger.ts';
import { readTlsMaterial, type TlsFiles, type TlsMaterial } from './tls-files.ts';

/** How often the files are looked at, in milliseconds. They are small, and watching does not see what is mounted anew. */
const LOOK_INTERVAL_MS = 5_000;

/** What each side of a connection between services proves itself with, and holds its peer to. */
export class ServiceTls {
  readonly #files: TlsFiles;
  readonly #listeners = new Set<(material: TlsMaterial) => void>();
  #material: TlsMaterial;
  #context: SecureContext;
  #problem = '';
  #looking: NodeJS.Timeout | undefined;

  /** @throws ConfigError naming every problem of the files */
  constructor(files: TlsFiles) {
    this.#files = files;
    this.#material = readTlsMaterial(files);
    this.#context = contextOf(this.#material);
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** For connections that are opened now. */
  get context(): SecureContext {
    return this.#context;
  }

  /** Calls back with what new connections are to use, whenever that changes. */
  onChange(listener: (material: TlsMaterial) => void): void {
    this.#listeners.add(listener);
  }

  /** Looks at the files again and again until it is closed, so that certificates are renewed without a stop. */
  watch(logger: Logger, intervalMs = LOOK_INTERVAL_MS): void {
    logger.info({ validTo: this.#material.validTo }, 'service certificate');
    this.#looking = setInterval(() => this.look(logger), intervalMs);
    this.#looking.unref();
  }

  /** Takes what is in the files now, unless something is wrong with it, as while only one of them has been replaced. */
  look(logger: Logger): void {
    try {
      const material = readTlsMaterial(this.#files);
      this.#problem = '';
      if (isSame(material, this.#material)) return;
      this.#context = contextOf(material);
      this.#material = material;
      for (const listener of this.#listeners) listener(material);
      logger.info({ validTo: material.validTo }, 'service certificate changed');
    } catch (err) {
      const { message } = err as Error;
      if (message !== this.#problem) logger.error({ problem: message }, 'service certificate not taken, the one before stays');
      this.#problem = message;
    }
  }

  close(): void {
    clearInterval(this.#looking);
  }
}

function contextOf({ cert, key, ca }: TlsMaterial): SecureContext {
  return createSecureContext({ cert, key, ca });
}

function isSame(a: TlsMaterial, b: TlsMaterial): boolean {
  return a.cert === b.cert && a.key === b.key && a.ca === b.ca;
}
