import type { Acting } from '@latchkey/audit/actor';
import { LICENSE_LEVELS_MAX } from '@latchkey/kit/validation/list-lengths';
import { hasLength } from '@latchkey/kit/validation/text';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import * as store from './application.store.ts';
import { type ApplicationRef, changeApplication, parseRef } from './change-application.ts';

/** The license levels in the order they were given. Throws `application_not_found`. */
export async function listLicenseLevels(ctx: AppsContext, ref: ApplicationRef): Promise<string[]> {
  const { accountId, applicationId } = parseRef(ref);
  const levels = await store.selectLevels(ctx.db, accountId, applicationId);
  if (!levels) throw errors.application_not_found();
  return levels;
}

/**
 * Replaces the whole set of license levels, in the order given.
 *
 * @param given 1 to 1,000, each 1 to 16 code points after trimming, each once (specification 2.3)
 * @throws `license_levels_invalid`, `application_not_found`
 */
export async function replaceLicenseLevels(
  ctx: Acting<AppsContext>,
  ref: ApplicationRef,
  given: readonly string[],
): Promise<void> {
  if (given.length > LICENSE_LEVELS_MAX) throw errors.license_levels_invalid();
  const levels = given.map((level) => level.trim());
  const isValid = levels.length > 0 && new Set(levels).size === levels.length && levels.every((level) => hasLength(level, 1, 16));
  if (!isValid) throw errors.license_levels_invalid();
  await changeApplication(ctx, ref, async ({ tx, row, record }) => {
    await store.updateApplication(tx, row.id, { license_levels: levels });
    await record('application.license_levels_replaced', { levels });
  });
}
