import { decrypt, deriveKey, encrypt, hmac } from '@latchkey/kit/crypto/secrets';
import { LRUCache } from 'lru-cache';
import { customAlphabet } from 'nanoid';

export type RuntimeKeyType = 'socketKey' | 'httpKey';

/** A runtime key. Only its hash and sealed text are stored. */
export interface NewRuntimeKey {
  readonly text: string;
  readonly hash: Buffer;
  readonly sealed: Buffer;
}

/** Creates, seals and hashes runtime keys (decisions 6). */
export interface Vault {
  /** A new key of an application, `lk_sock_` or `lk_http_` and 32 of `[0-9A-Za-z]`. */
  create(type: RuntimeKeyType, applicationId: string): NewRuntimeKey;
  /** The text of a sealed key. Throws if it was sealed under another SECRET_KEY or for another application. */
  open(type: RuntimeKeyType, applicationId: string, sealedHex: string): string;
  /** The hash for looking up a key, or undefined for text that cannot be a key of that type. */
  hash(type: RuntimeKeyType, text: string): Buffer | undefined;
}

/** Identifies a key without revealing it: a part of its hash in base64url, long enough to be unique. */
export function fingerprintOf(hash: Buffer): string {
  return hash.toString('base64url', 0, FINGERPRINT_BYTES);
}

const FINGERPRINT_BYTES = 9;

const PREFIX = { socketKey: 'lk_sock_', httpKey: 'lk_http_' } as const;
const RANDOM_PART = /^[0-9A-Za-z]{32}$/;
const randomPart = customAlphabet('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 32);

/** Opened keys of each type in memory, so that the next list of their account decrypts none. */
const OPENED_KEYS_MAX = 5_000;

/** A vault under keys derived from the deployment's secret. */
export function createVault(secretKey: string): Vault {
  const sealingKey = deriveKey(secretKey, 'apps/runtime-key-sealing');
  const lookUpKey = deriveKey(secretKey, 'apps/runtime-key-look-up');
  const createCache = () => new LRUCache<string, { readonly sealedHex: string; readonly text: string }>({ max: OPENED_KEYS_MAX });
  const opened = { socketKey: createCache(), httpKey: createCache() };
  const context = (type: RuntimeKeyType, applicationId: string) => `${type}/${applicationId}`;
  return {
    create(type, applicationId) {
      const text = PREFIX[type] + randomPart();
      return { text, hash: hmac(lookUpKey, text), sealed: encrypt(sealingKey, text, context(type, applicationId)) };
    },
    open(type, applicationId, sealedHex) {
      const found = opened[type].get(applicationId);
      // A rotated key has other bytes.
      if (found?.sealedHex === sealedHex) return found.text;
      const text = decrypt(sealingKey, Buffer.from(sealedHex, 'hex'), context(type, applicationId));
      opened[type].set(applicationId, { sealedHex, text });
      return text;
    },
    hash(type, text) {
      const prefix = PREFIX[type];
      if (!text.startsWith(prefix) || !RANDOM_PART.test(text.slice(prefix.length))) return undefined;
      return hmac(lookUpKey, text);
    },
  };
}
