import type { Acting } from '@latchkey/audit/actor';
import { isMissingTable } from '@latchkey/kit/database/database';
import { updateApplication } from '../application/application.store.ts';
import { recordApplication } from '../application/audit.ts';
import { type ApplicationRef, changeApplication, toRef } from '../application/owned-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { type KeyHolderRow, selectByKeyHash, selectFirstSealedKey } from './runtime-key.store.ts';
import { fingerprintOf, type RuntimeKeyType } from './vault.ts';

const HOUR_MS = 3_600_000;

/** Where the limit on rotations stands after one that succeeded. */
export interface RotationStanding {
  readonly rotationsMax: number;
  readonly rotationsLeft: number;
  /** Until the oldest rotation of the hour is out of it, in whole seconds. */
  readonly resetSeconds: number;
}

/** The application that a runtime key belongs to, and the key's fingerprint. Throws `runtime_key_invalid`. */
export async function lookUpApplication(
  ctx: AppsContext,
  type: RuntimeKeyType,
  text: string,
): Promise<{ row: KeyHolderRow; keyFingerprint: string }> {
  const hash = ctx.vault.hash(type, text);
  const row = hash && (await selectByKeyHash(ctx.pool, type, hash));
  if (!row) throw errors.runtime_key_invalid();
  return { row, keyFingerprint: fingerprintOf(hash) };
}

/**
 * Replaces one runtime key. The times of the last hour's rotations stand in the application's row, which is locked, so that rotations at
 * once can't exceed the limit; only successful ones count, both types together (decisions 6).
 *
 * @throws `application_not_found`, `rotation_limit_reached`
 */
export async function rotateRuntimeKey(
  ctx: Acting<AppsContext>,
  ref: ApplicationRef,
  type: RuntimeKeyType,
): Promise<RotationStanding> {
  return changeApplication(ctx, ref, async (tx, row, log) => {
    // Read under the lock, or a rotation that waited for it would be dated before the one it waited for.
    const now = ctx.clock();
    const recent = row.recent_rotations
      .filter((time) => time.getTime() > now.getTime() - HOUR_MS)
      .sort((a, b) => a.getTime() - b.getTime());
    if (recent.length >= ctx.rotationsPerHour)
      throw rotationLimitReached(ctx.rotationsPerHour, recent[recent.length - ctx.rotationsPerHour], now);
    const key = ctx.vault.create(type, row.id);
    const keyColumns =
      type === 'socketKey'
        ? { socket_key_hash: key.hash, socket_key_sealed: key.sealed }
        : { http_key_hash: key.hash, http_key_sealed: key.sealed };
    await updateApplication(tx, row.id, { ...keyColumns, runtime_keys_updated_at: now, recent_rotations: [...recent, now] });
    await log({ case: 'runtimeKeyRotated', value: { type } }, now);
    await recordApplication(ctx, tx, toRef(row), 'application.runtime_key_rotated', { type });
    const rotationsLeft = ctx.rotationsPerHour - recent.length - 1;
    return { rotationsMax: ctx.rotationsPerHour, rotationsLeft, resetSeconds: secondsUntilFree(recent[0] ?? now, now) };
  });
}

/**
 * A check that tries the deployment's secret on a stored key, so that a wrong one is found at the start and not by the first client. It passes while there is
 * no schema, which may come later with keys in it, and so is to be made again once there is one; from then on it asks no more.
 *
 * @returns rejects when it is not the secret that the key was sealed under
 */
export function createSecretKeyCheck(ctx: AppsContext): () => Promise<void> {
  let isRight = false;
  return async () => {
    if (isRight) return;
    try {
      await tryStoredKey(ctx);
      isRight = true;
    } catch (err) {
      if (!isMissingTable(err)) throw err;
    }
  };
}

async function tryStoredKey(ctx: AppsContext): Promise<void> {
  const row = await selectFirstSealedKey(ctx.db);
  if (!row) return;
  try {
    ctx.vault.open('socketKey', row.id, row.socket_key_sealed.toString('hex'));
  } catch {
    throw new Error(
      'SECRET_KEY is not the one that this database was written with. Set it to that key; npm start stores it in secrets.json ' +
        'of DATA_DIR, so restore that file from a backup',
    );
  }
}

/** Whole seconds until a rotation is an hour old, at least 1. */
function secondsUntilFree(rotation: Date, now: Date): number {
  return Math.max(1, Math.ceil((rotation.getTime() + HOUR_MS - now.getTime()) / 1000));
}

/** @param blocking the rotation that must leave the hour before another may happen */
function rotationLimitReached(limit: number, blocking: Date | undefined, now: Date) {
  return errors.rotation_limit_reached({
    policy: 'rotations',
    limit: String(limit),
    windowSeconds: '3600',
    remaining: '0',
    retryAfterSeconds: String(secondsUntilFree(blocking ?? now, now)),
  });
}
