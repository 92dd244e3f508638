import type { KeyObject } from 'node:crypto';
import { constantTimeEqual, deriveKey, hmac } from '@latchkey/kit/crypto/secrets';
import { errors } from '../errors.ts';

const MAC_BYTES = 16;
const CURSOR = /^(\d{1,14})\.([0-9a-f-]{36})\.([\w-]{22})$/;

export type CursorSigner = ReturnType<typeof createCursorSigner>;

/**
 * Signs the cursors of the audit log, so that each is valid for its account only.
 *
 * @param secrets the same at all gateways: the first signs, any verifies
 */
export function createCursorSigner(secrets: readonly string[]) {
  const keys = secrets.map((secret) => deriveKey(secret, 'gateway/audit-cursor'));
  return {
    sign(accountId: string, { atMs, id }: { readonly atMs: number; readonly id: string }): string {
      const position = `${atMs}.${id}`;
      return `${position}.${macOf(keys[0] as KeyObject, accountId, position)}`;
    },
    /** Throws `cursor_invalid` for everything but a cursor of this account. */
    parse(accountId: string, cursor: string) {
      const [, ms = '', id = '', mac = ''] = CURSOR.exec(cursor) ?? [];
      const isSigned = keys.some((key) => constantTimeEqual(macOf(key, accountId, `${ms}.${id}`), mac));
      if (!isSigned) throw errors.cursor_invalid();
      return { atMs: Number(ms), id };
    },
  };
}

function macOf(key: KeyObject, accountId: string, position: string): string {
  return hmac(key, `${accountId}.${position}`).subarray(0, MAC_BYTES).toString('base64url');
}
