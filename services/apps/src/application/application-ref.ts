import { parseId } from '@latchkey/kit/validation/id';
import { errors } from '../proto-errors.ts';

/** Names an application of an account, as a caller sent it. */
export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/** The ids of a reference in canonical form. Throws `application_not_found` for other text. */
export function parseRef(ref: ApplicationRef): ApplicationRef {
  const accountId = parseId(ref.accountId);
  const applicationId = parseId(ref.applicationId);
  if (!accountId || !applicationId) throw errors.application_not_found();
  return { accountId, applicationId };
}
