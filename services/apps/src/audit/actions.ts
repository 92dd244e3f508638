import type { Acting } from '@latchkey/audit/actor';
import { type Changes, recordAudit } from '@latchkey/audit/record';
import type { Kysely } from 'kysely';
import type { AppsContext } from '../context.ts';
import type { AppsDatabase } from '../db/schema.ts';

/** Changes of applications, by their names in the audit log. */
export type ApplicationAction =
  | 'application.created'
  | 'application.paused'
  | 'application.resumed'
  | 'application.setting_updated'
  | 'application.license_levels_replaced'
  | 'application.runtime_key_rotated'
  | 'application.deleted';

/** Adds a change of an application to the audit log, in its transaction. */
export async function recordChange(
  { origin }: Pick<Acting<AppsContext>, 'origin'>,
  tx: Kysely<AppsDatabase>,
  { accountId, applicationId: id }: { readonly accountId: string; readonly applicationId: string },
  action: ApplicationAction,
  changes: Changes,
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'application', id }, changes });
}
