import { parseId } from '@latchkey/kit/id';
import { errors } from '../errors.ts';

/** Which of some applications are the account's. */
export type FindOwnedApplications = (accountId: string, applicationIds: readonly string[]) => Promise<readonly string[]>;

/** Throws `application_not_found` unless all are the account's. Text that is no id is nobody's (decisions 1). */
export async function checkOwned(accountId: string, ids: readonly string[], findOwned: FindOwnedApplications): Promise<void> {
  if (ids.length === 0) return;
  if (!ids.every(parseId)) throw errors.application_not_found();
  const owned = new Set(await findOwned(accountId, ids));
  if (!ids.every((id) => owned.has(id))) throw errors.application_not_found();
}
