import type { KeyObject } from 'node:crypto';
import { constantTimeEqual, deriveKey, hmac } from '@latchkey/kit/crypto/secrets';
import { errors } from '../errors.ts';

/** What cursors are signed with: the first signs, any may have signed. */
export type CursorKeys = readonly [KeyObject, ...KeyObject[]];

/** The last entry of a page. */
export interface EntryPlace {
  readonly atMs: number;
  readonly id: string;
}

const MAC_BYTES = 16;
const CURSOR = /^(\d{1,14})\.([0-9a-f-]{36})\.([\w-]{22})$/;

/** The key that cursors are signed with, from a secret that all gateways of a deployment have. */
export function toCursorKey(secret: string): KeyObject {
  return deriveKey(secret, 'gateway/audit-cursor');
}

/**
 * The cursor of an account's page.
 *
 * @param keys the first signs
 */
export function toCursor([key]: CursorKeys, accountId: string, { atMs, id }: EntryPlace): string {
  const place = `${atMs}.${id}`;
  return `${place}.${macOf(key, accountId, place)}`;
}

/**
 * Where a cursor continues.
 *
 * @param keys any of them may have signed it: gateways change their secrets one after the other
 * @throws `cursor_invalid` for everything but a cursor of {@link toCursor} for this account
 */
export function parseCursor(keys: readonly KeyObject[], accountId: string, text: string): EntryPlace {
  const [, ms = '', id = '', mac = ''] = CURSOR.exec(text) ?? [];
  const isSigned = keys.some((key) => constantTimeEqual(macOf(key, accountId, `${ms}.${id}`), mac));
  if (!isSigned) throw errors.cursor_invalid();
  return { atMs: Number(ms), id };
}

function macOf(key: KeyObject, accountId: string, place: string): string {
  return hmac(key, `${accountId}.${place}`).subarray(0, MAC_BYTES).toString('base64url');
}
