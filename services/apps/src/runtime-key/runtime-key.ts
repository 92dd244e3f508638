import type { Acting } from '@latchkey/audit/actor';
import { isMissingTable } from '@latchkey/kit/database/database';
import { waitSeconds } from '@latchkey/kit/errors/errors';
import { type KeyHolderRow, selectFirstSealedKey } from '../application/application.store.ts';
import { type ApplicationRef, changeApplication } from '../application/change-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { fingerprintOf, type RuntimeKeyType } from './vault.ts';

const HOUR_MS = 3_600_000;

/** The application that a runtime key belongs to. Throws `runtime_key_invalid`. */
export async function lookUpApplication(
  ctx: AppsContext,
  type: RuntimeKeyType,
  text: string,
): Promise<{ row: KeyHolderRow; keyFingerprint: string }> {
  const hash = ctx.vault.hash(type, text);
  const row = hash && (await ctx.reads.selectByKeyHash[type](hash));
  if (!row) throw errors.runtime_key_invalid();
  return { row, keyFingerprint: fingerprintOf(hash) };
}

/**
 * Replaces one runtime key. The locked row has the times of the last hour's rotations, so that
 * concurrent rotations cannot exceed the limit. Only successful ones count, both types together.
 *
 * @returns the limit after it; `resetSeconds` until the oldest rotation of the hour is an hour old
 * @throws `application_not_found`, `rotation_limit_reached`
 */
export async function rotateRuntimeKey(ctx: Acting<AppsContext>, ref: ApplicationRef, type: RuntimeKeyType) {
  return changeApplication(ctx, ref, async ({ row, update, record }) => {
    // Under the lock: a rotation that waited for another must be dated after it.
    const now = ctx.clock();
    const recent = row.recent_rotations
      .filter((time) => time.getTime() > now.getTime() - HOUR_MS)
      .sort((a, b) => a.getTime() - b.getTime());
    const rotationsMax = ctx.rotationsPerHour;
    // The rotation that must be an hour old before another may happen.
    const blocking = recent.length >= rotationsMax ? (recent[recent.length - rotationsMax] ?? now) : undefined;
    if (blocking) {
      const retryMs = msUntilFree(blocking, now);
      throw errors.rotation_limit_reached({ policy: 'rotations', limit: rotationsMax, windowMs: HOUR_MS, retryMs });
    }
    const { hash, sealed } = ctx.vault.create(type, row.id);
    const key =
      type === 'socketKey'
        ? { socket_key_hash: hash, socket_key_sealed: sealed }
        : { http_key_hash: hash, http_key_sealed: sealed };
    const values = { ...key, runtime_keys_updated_at: now, recent_rotations: [...recent, now] };
    await update(values, { case: 'runtimeKeyRotated', value: { type } }, now);
    await record('application.runtime_key_rotated', { type });
    const rotationsLeft = rotationsMax - recent.length - 1;
    return { rotationsMax, rotationsLeft, resetSeconds: waitSeconds(msUntilFree(recent[0] ?? now, now)) };
  });
}

const msUntilFree = (rotation: Date, now: Date) => rotation.getTime() + HOUR_MS - now.getTime();

/**
 * A check of the deployment's secret against a stored key, so that a wrong one is found at the
 * start and not by the first client. It passes before there is a schema, which may come later with
 * keys in it; once it has passed with one, it queries no more.
 *
 * @returns a function that rejects for a wrong secret
 */
export function createSecretKeyCheck(ctx: AppsContext): () => Promise<void> {
  let isVerified = false;
  return async () => {
    if (isVerified) return;
    try {
      await verifyStoredKey(ctx);
      isVerified = true;
    } catch (err) {
      if (!isMissingTable(err)) throw err;
    }
  };
}

async function verifyStoredKey(ctx: AppsContext): Promise<void> {
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
