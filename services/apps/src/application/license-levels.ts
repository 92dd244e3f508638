import type { Acting } from '@latchkey/audit/actor';
import { LICENSE_LEVEL, LICENSE_LEVELS_MAX } from '@latchkey/contract/license-level';
import { etagOf, isExpected } from '@latchkey/kit/validation/etag';
import { hasLength } from '@latchkey/kit/validation/text';
import type { ReplaceLicenseLevelsRequest } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import * as store from './application.store.ts';
import { type ApplicationRef, parseRef } from './application-ref.ts';
import { changeApplication } from './change-application.ts';

/** The license levels in the order they were given. Throws `application_not_found`. */
export async function listLicenseLevels(ctx: AppsContext, ref: ApplicationRef) {
  const { accountId, applicationId } = parseRef(ref);
  const levels = await store.selectLevels(ctx.db, accountId, applicationId);
  if (!levels) throw errors.application_not_found();
  return { levels, etag: etagOf(levels) };
}

/**
 * Replaces the whole set of license levels, in the order given.
 *
 * @param request one to `LICENSE_LEVELS_MAX` levels, each trimmed and once (specification 2.3)
 * @throws `license_levels_invalid`, `application_not_found`, `changed_meanwhile`
 */
export async function replaceLicenseLevels(ctx: Acting<AppsContext>, request: ReplaceLicenseLevelsRequest): Promise<void> {
  const { levels: given, ifMatch } = request;
  if (given.length > LICENSE_LEVELS_MAX) throw errors.license_levels_invalid();
  const levels = given.map((level) => level.trim());
  const isSized = levels.every((level) => hasLength(level, LICENSE_LEVEL.min, LICENSE_LEVEL.max));
  const isValid = levels.length > 0 && new Set(levels).size === levels.length && isSized;
  if (!isValid) throw errors.license_levels_invalid();
  await changeApplication(ctx, request, async ({ tx, row, record }) => {
    // Levels can be long: most changes do not need them.
    if (ifMatch.length > 0)
      if (!isExpected(ifMatch, etagOf((await store.selectLevels(tx, row.account_id, row.id)) ?? [])))
        throw errors.changed_meanwhile();
    await store.updateApplication(tx, row.id, { license_levels: levels });
    await record('application.license_levels_replaced', { levels });
  });
}
