import { parseId } from '@latchkey/kit/validation/id';
import { type Principal, reaches } from '../authentication/principal.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';

/** Names an application in a call to a service. */
export interface ApplicationRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/**
 * Checks an application id against the principal. A key that is restricted away from the application gets 404 if the account has
 * none of this id, else 403 (decisions 2). Other principals pass: the service that they call checks the ownership.
 *
 * @throws `route_not_found`, `application_forbidden`
 */
export async function resolveApplication(
  clients: Pick<Clients, 'applications'>,
  principal: Principal,
  idText: string,
): Promise<ApplicationRef> {
  const applicationId = parseId(idText);
  if (applicationId === undefined) throw errors.route_not_found();
  const ref = { accountId: principal.accountId, applicationId };
  if (reaches(principal, applicationId)) return ref;
  await checkOwned(clients, ref);
  throw errors.application_forbidden();
}

/** Throws `route_not_found` unless the application is the account's: for checks that come before any call to a service. */
export async function checkOwned(
  clients: Pick<Clients, 'applications'>,
  { accountId, applicationId }: ApplicationRef,
): Promise<void> {
  const owned = await clients.applications.findOwnedApplications({ accountId, applicationIds: [applicationId] });
  if (owned.applicationIds.length === 0) throw errors.route_not_found();
}
