import { decrypt, deriveKey, encrypt, hmac } from '@latchkey/kit/secrets';
import { LRUCache } from 'lru-cache';
import { customAlphabet } from 'nanoid';

export type RuntimeKeyType = 'socketKey' | 'httpKey';

/** A runtime key in the three forms it has. Only the last two are stored. */
export interface NewRuntimeKey {
  readonly text: string;
  readonly hash: Buffer;
  readonly sealed: Buffer;
}

/** Makes, seals and recognises runtime keys (decisions 6). */
export interface Vault {
  /** A new key of an application, `lk_sock_` or `lk_http_` and 32 of `[0-9A-Za-z]`. */
  create(type: RuntimeKeyType, applicationId: string): NewRuntimeKey;
  /** The text of a sealed key, whose bytes are given in hex. Throws when it was sealed under another SECRET_KEY or for another application. */
  open(type: RuntimeKeyType, applicationId: string, sealedHex: string): string;
  /** The hash a key is looked up by, or undefined for text that can't be a key of that type. */
  hash(type: RuntimeKeyType, text: string): Buffer | undefined;
}

/** Tells a key from those before and after it, for whoever may not know the key: enough of its hash that no two ever agree, in base64url. */
export function fingerprintOf(hash: Buffer): string {
  return hash.toString('base64url', 0, FINGERPRINT_BYTES);
}

const FINGERPRINT_BYTES = 9;

const PREFIX = { socketKey: 'lk_sock_', httpKey: 'lk_http_' } as const;
const RANDOM_PART = /^[0-9A-Za-z]{32}$/;
const randomPart = customAlphabet('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 32);

/** Opened keys of each type that stay in memory, so that the next list of their account decrypts none. */
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
