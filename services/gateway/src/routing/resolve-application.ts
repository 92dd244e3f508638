import { parseId } from '@latchkey/kit/validation/id';
import type { Principal } from '../authentication/credential.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import { currentRequest } from '../request-context.ts';

export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/**
 * Checks an application id against the principal. For other applications, a restricted key gets 403
 * if the account owns them, else 404. The called service checks the ownership for other principals.
 *
 * @throws `application_not_found`, `application_forbidden`
 */
export async function resolveApplication(clients: Clients, principal: Principal, idText: string): Promise<ApplicationRef> {
  const applicationId = parseId(idText);
  if (applicationId === undefined) throw errors.application_not_found();
  const ref = { accountId: principal.accountId, applicationId };
  if (principal.allApplications || principal.applicationIds.has(applicationId)) return ref;
  await checkOwned(clients, ref);
  throw errors.application_forbidden();
}

/**
 * Checks the application of a replayed deletion, which only its response still names.
 *
 * @throws as {@link resolveApplication}
 */
export async function checkReplay(clients: Clients, principal: Principal, idText: string): Promise<void> {
  if (currentRequest()?.isReplayed && !principal.allApplications) await resolveApplication(clients, principal, idText);
}

/** Throws `application_not_found` for another account's application. */
export async function checkOwned(clients: Clients, ref: ApplicationRef): Promise<void> {
  if (!(await isOwned(clients, ref))) throw errors.application_not_found();
}

export async function isOwned({ applications }: Clients, { accountId, applicationId }: ApplicationRef): Promise<boolean> {
  return (await applications.findOwnedApplications({ accountId, applicationIds: [applicationId] })).applicationIds.length > 0;
}
