import type { KeyObject } from 'node:crypto';
import { decrypt, deriveKey, encrypt, hmac } from '@latchkey/kit/crypto/secrets';
import { LRUCache } from 'lru-cache';
import { customAlphabet } from 'nanoid';

export type RuntimeKeyType = 'socketKey' | 'httpKey';

const PREFIX = { socketKey: 'lk_sock_', httpKey: 'lk_http_' } as const;
const RANDOM_PART = /^[0-9A-Za-z]{32}$/;
const randomPart = customAlphabet('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 32);

/** Opened keys of each type in memory, so that the next list of their account decrypts none. */
const OPENED_KEYS_MAX = 5_000;

/** Creates, seals and hashes runtime keys, under keys derived from the deployment's secret. */
export class Vault {
  readonly #sealingKey: KeyObject;
  readonly #hashKey: KeyObject;
  readonly #opened = { socketKey: createCache(), httpKey: createCache() };

  constructor(secretKey: string) {
    this.#sealingKey = deriveKey(secretKey, 'apps/runtime-key-sealing');
    this.#hashKey = deriveKey(secretKey, 'apps/runtime-key-look-up');
  }

  /** A new key of an application. Only its hash and its sealed text are stored. */
  create(type: RuntimeKeyType, applicationId: string) {
    const text = PREFIX[type] + randomPart();
    const sealed = encrypt(this.#sealingKey, text, `${type}/${applicationId}`);
    return { text, hash: hmac(this.#hashKey, text), sealed };
  }

  /**
   * The text of a sealed key. Throws if it was sealed under another SECRET_KEY, or for another
   * application or type.
   */
  open(type: RuntimeKeyType, applicationId: string, sealedHex: string): string {
    const found = this.#opened[type].get(applicationId);
    // A rotated key has other bytes.
    if (found?.sealedHex === sealedHex) return found.text;
    const text = decrypt(this.#sealingKey, Buffer.from(sealedHex, 'hex'), `${type}/${applicationId}`);
    this.#opened[type].set(applicationId, { sealedHex, text });
    return text;
  }

  /** The hash to find a key by, or undefined for text that cannot be a key of that type. */
  hash(type: RuntimeKeyType, text: string): Buffer | undefined {
    const prefix = PREFIX[type];
    if (!text.startsWith(prefix) || !RANDOM_PART.test(text.slice(prefix.length))) return undefined;
    return hmac(this.#hashKey, text);
  }
}

function createCache() {
  return new LRUCache<string, { readonly sealedHex: string; readonly text: string }>({ max: OPENED_KEYS_MAX });
}

const FINGERPRINT_BYTES = 9;

/** Identifies a key without revealing it: a part of its hash, long enough to be unique. */
export function fingerprintOf(hash: Buffer): string {
  return hash.toString('base64url', 0, FINGERPRINT_BYTES);
}
