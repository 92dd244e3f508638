import type { Acting } from '@latchkey/audit/actor';
import { SIGNING_KEY, SIGNING_KEY_RULE, SIGNING_KEYS_MAX } from '@latchkey/contract/release';
import type { UpdateReleaseSettingsRequest } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { type ApplicationRef, parseRef } from '../application/application-ref.ts';
import { changeApplication } from '../application/change-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { selectReleaseSettings } from './release.store.ts';

/** Settings of the update feeds of an application. Throws `application_not_found`. */
export async function getReleaseSettings(ctx: AppsContext, ref: ApplicationRef) {
  const { accountId, applicationId } = parseRef(ref);
  const found = await selectReleaseSettings(ctx.db, accountId, applicationId);
  if (!found) throw errors.application_not_found();
  return found;
}

/**
 * Changes the given settings. Published releases stay, whatever the new keys are.
 *
 * @throws `application_not_found`, `release_invalid`
 */
export async function updateReleaseSettings(ctx: Acting<AppsContext>, request: UpdateReleaseSettingsRequest) {
  const keys = request.signingKeys && [...new Set(request.signingKeys.keys)];
  if (keys && (keys.length > SIGNING_KEYS_MAX || !keys.every((key) => SIGNING_KEY.test(key))))
    throw errors.release_invalid().withDetails({ path: 'signingKeys', message: SIGNING_KEY_RULE });
  return changeApplication(ctx, request, async ({ row: { public_updates, signing_keys }, update, record }) => {
    const previous = { public_updates, signing_keys };
    const next = { public_updates: request.publicUpdates ?? public_updates, signing_keys: keys ?? signing_keys };
    if (JSON.stringify(next) === JSON.stringify(previous)) return previous;
    await update(next, undefined, ctx.clock());
    await record('application.release_settings_updated', {
      publicUpdates: next.public_updates,
      signingKeys: next.signing_keys,
    });
    return next;
  });
}
