import type { CallOptions } from '@connectrpc/connect';
import { parseId } from '@latchkey/kit/id';
import type { Principal } from '../authentication/principal.ts';
import { reaches } from '../authentication/principal.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import type { Access, RouteRequest } from '../route/route.ts';

/** The two facts that every application call carries. */
export interface ApplicationCall {
  readonly accountId: string;
  readonly applicationId: string;
}

/**
 * Runs a call for an application. A key that is restricted away from it never makes the call: it hears 404 where the application is not the
 * account's, else 403 (decisions 2).
 */
export async function withApplication<T>(
  clients: Pick<Clients, 'applications'>,
  request: Pick<RouteRequest<Access, unknown, unknown, unknown>, 'call'> & { readonly principal: Principal },
  idText: string,
  run: (call: ApplicationCall) => Promise<T>,
): Promise<T> {
  const { principal, call } = request;
  const applicationId = parseId(idText);
  if (applicationId === undefined) throw errors.route_not_found();
  const ref = { accountId: principal.accountId, applicationId };
  if (!reaches(principal, applicationId)) {
    await checkOwned(clients, ref, call);
    throw errors.application_forbidden();
  }
  return run(ref);
}

/** Throws `route_not_found` unless the application is the account's: for what is refused before any service is called. */
export async function checkOwned(
  clients: Pick<Clients, 'applications'>,
  { accountId, applicationId }: ApplicationCall,
  call: CallOptions,
): Promise<void> {
  const owned = await clients.applications.findOwnedApplications({ accountId, applicationIds: [applicationId] }, call);
  if (owned.applicationIds.length === 0) throw errors.route_not_found();
}
