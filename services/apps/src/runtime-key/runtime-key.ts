import type { Acting } from '@latchkey/audit/actor';
import { KEY_OVERLAP_SECONDS_MAX } from '@latchkey/contract/key-overlap';
import { isMissingTable } from '@latchkey/kit/database/database';
import { waitSeconds } from '@latchkey/kit/errors/errors';
import {
  type EndKeyOverlapRequest,
  RuntimeKeyType as KeyType,
  type LookUpApplicationRequest,
  type RotateRuntimeKeyRequest,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type KeyHolderRow, selectFirstSealedKey } from '../application/application.store.ts';
import { changeApplication } from '../application/change-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { toSettingsMessage } from '../setting/setting.ts';
import { markUsed, removePreviousKey, storePreviousKey } from './previous-key.store.ts';
import { fingerprintOf, type RuntimeKeyType } from './runtime-key-text.ts';

const HOUR_MS = 3_600_000;
/** Least time between two stored uses of a previous key. */
const USE_INTERVAL_MS = 60_000;

/**
 * The application that a runtime key belongs to, or belonged to before a rotation whose overlap has
 * not ended. Throws `runtime_key_invalid`.
 */
export async function lookUpApplication(ctx: AppsContext, { key }: LookUpApplicationRequest) {
  const hash = key.case && ctx.vault.hash(key.case, key.value);
  const row = hash && (await findKeyHolder(ctx, key.case, hash));
  if (!row) throw errors.runtime_key_invalid();
  return {
    applicationId: row.id,
    accountId: row.account_id,
    name: row.name,
    settings: toSettingsMessage(row),
    lastSequence: BigInt(row.last_sequence),
    epoch: row.epoch,
    keyFingerprint: fingerprintOf(hash),
  };
}

/** The application of a key's hash, current or previous. A current key costs one statement. */
export async function findKeyHolder(ctx: AppsContext, type: RuntimeKeyType, hash: Buffer): Promise<KeyHolderRow | undefined> {
  const current = await ctx.reads.selectByKeyHash[type](hash);
  if (current) return current;
  const now = ctx.clock();
  const previous = await ctx.reads.selectByPreviousKey(hash);
  if (previous?.type !== type || previous.expires_at <= now) return undefined;
  const since = new Date(now.getTime() - USE_INTERVAL_MS);
  if (!previous.last_used_at || previous.last_used_at <= since) await markUsed(ctx.db, hash, now, since);
  return previous;
}

/**
 * Replaces one runtime key. The locked row has the times of the last hour's rotations, so that
 * concurrent rotations cannot exceed the limit. Only successful ones count, both types together.
 *
 * @returns the limit after it; `resetSeconds` until the oldest rotation of the hour is an hour old
 * @throws `key_overlap_invalid`, `application_not_found`, `overlap_active`,
 *   `rotation_limit_reached`, `runtime_key_type_invalid`
 */
export async function rotateRuntimeKey(ctx: Acting<AppsContext>, request: RotateRuntimeKeyRequest) {
  const type = toKeyType(request.type);
  const { overlapSeconds, endPrevious } = request;
  if (!(overlapSeconds >= 0 && overlapSeconds <= KEY_OVERLAP_SECONDS_MAX)) throw errors.key_overlap_invalid();
  return changeApplication(ctx, request, async ({ tx, row, update, record }) => {
    // Under the lock: a rotation that waited for another must be dated after it.
    const now = ctx.clock();
    if ((await removePreviousKey(tx, row.id, type, now)) && !endPrevious) throw errors.overlap_active();
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
    if (overlapSeconds > 0) await storePreviousKey(tx, row.id, type, new Date(now.getTime() + overlapSeconds * 1_000));
    const { hash, sealed } = ctx.vault.create(type, row.id);
    const key =
      type === 'socketKey'
        ? { socket_key_hash: hash, socket_key_sealed: sealed }
        : { http_key_hash: hash, http_key_sealed: sealed };
    const values = { ...key, runtime_keys_updated_at: now, recent_rotations: [...recent, now] };
    await update(values, { case: 'runtimeKeyRotated', value: { type } }, now);
    await record('application.runtime_key_rotated', { type, ...(overlapSeconds > 0 && { overlapSeconds }) });
    const rotationsLeft = rotationsMax - recent.length - 1;
    return { rotationsMax, rotationsLeft, resetSeconds: waitSeconds(msUntilFree(recent[0] ?? now, now)) };
  });
}

/**
 * Ends the overlap of a rotation: the old key is rejected from then on. Without one it changes
 * nothing.
 *
 * @throws `application_not_found`, `runtime_key_type_invalid`
 */
export async function endKeyOverlap(ctx: Acting<AppsContext>, request: EndKeyOverlapRequest): Promise<void> {
  const type = toKeyType(request.type);
  await changeApplication(ctx, request, async ({ tx, row, addEvent, record }) => {
    const now = ctx.clock();
    if (!(await removePreviousKey(tx, row.id, type, now))) return;
    await addEvent({ case: 'runtimeKeyRotated', value: { type } }, now);
    await record('application.key_overlap_ended', { type });
  });
}

function toKeyType(type: KeyType): RuntimeKeyType {
  if (type === KeyType.SOCKET) return 'socketKey';
  if (type === KeyType.HTTP) return 'httpKey';
  throw errors.runtime_key_type_invalid();
}

const msUntilFree = (rotation: Date, now: Date) => rotation.getTime() + HOUR_MS - now.getTime();

/**
 * A check of the deployment's secret against a stored key, so that a wrong one is found at the
 * start and not by the first client. It passes before there is a schema, which may come later with
 * keys in it; once it has passed with one, it queries no more.
 *
 * @returns a function that rejects for a wrong secret
 */
export function createSecretKeyCheck({ db, vault }: AppsContext): () => Promise<void> {
  let isVerified = false;
  return async () => {
    if (isVerified) return;
    const row = await selectFirstSealedKey(db).catch((err: unknown) => {
      if (!isMissingTable(err)) throw err;
      return null;
    });
    try {
      if (row) vault.open('socketKey', row.id, row.socket_key_sealed.toString('hex'));
    } catch {
      throw new Error(
        'SECRET_KEY is not the one that this database was written with. Set it to that key; npm start stores it in secrets.json ' +
          'of DATA_DIR, so restore that file from a backup',
      );
    }
    isVerified = row !== null;
  };
}
