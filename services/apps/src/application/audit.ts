import type { Acting } from '@latchkey/audit/actor';
import type { Changes } from '@latchkey/audit/record';
import { recordAudit } from '@latchkey/audit/record';
import type { Kysely } from 'kysely';
import type { AppsContext } from '../context.ts';
import type { AppsDatabase } from '../db/schema.ts';
import type { ApplicationRef } from './owned-application.ts';

/** What is done to applications, by the name that the audit log has for it. */
export type ApplicationAction =
  | 'application.created'
  | 'application.paused'
  | 'application.resumed'
  | 'application.setting_updated'
  | 'application.license_levels_replaced'
  | 'application.runtime_key_rotated'
  | 'application.deleted';

/** Writes to the audit log what is done to an application, in the transaction that does it. */
export async function recordApplication(
  { origin }: Pick<Acting<AppsContext>, 'origin'>,
  tx: Kysely<AppsDatabase>,
  { accountId, applicationId }: ApplicationRef,
  action: ApplicationAction,
  changes: Changes,
): Promise<void> {
  await recordAudit(tx, origin, { accountId, action, subject: { kind: 'application', id: applicationId }, changes });
}
