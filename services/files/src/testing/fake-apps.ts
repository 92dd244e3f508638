import { randomUUID } from 'node:crypto';
import { createRouterTransport, type ServiceImpl, type Transport } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

/** Names an application of an account. */
export interface OwnedRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/** Stands for the apps service: knows who owns what, and nothing else. */
export interface FakeApps {
  readonly impl: Pick<ServiceImpl<typeof ApplicationService>, 'findOwnedApplications'>;
  readonly transport: Transport;
  /** Makes an application, of a new account unless one is named. */
  createOwned(accountId?: string): OwnedRef;
  /** The application is nobody's from now on. */
  delete(applicationId: string): void;
  /** Makes each question fail with the error from now on. */
  failWith(err: Error | undefined): void;
  /** Each question waits for the promise before it is answered, from now on. */
  waitFor(gate: Promise<unknown> | undefined): void;
  /** `x-request-id` of each question so far. */
  readonly requestIds: string[];
}

export function createFakeApps(): FakeApps {
  const owners = new Map<string, string>();
  const requestIds: string[] = [];
  let failure: Error | undefined;
  let gate: Promise<unknown> | undefined;
  const impl: FakeApps['impl'] = {
    async findOwnedApplications({ accountId, applicationIds }, call) {
      requestIds.push(call.requestHeader.get('x-request-id') ?? '');
      await gate;
      if (failure) throw failure;
      return { applicationIds: applicationIds.filter((id) => owners.get(id) === accountId) };
    },
  };
  return {
    impl,
    transport: createRouterTransport(({ service }) => void service(ApplicationService, impl)),
    createOwned(accountId = randomUUID()) {
      const applicationId = randomUUID();
      owners.set(applicationId, accountId);
      return { accountId, applicationId };
    },
    delete: (applicationId) => void owners.delete(applicationId),
    failWith(err) {
      failure = err;
    },
    waitFor(promise) {
      gate = promise;
    },
    requestIds,
  };
}
