import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

/** Stands for the apps service: knows who owns what, and nothing else. */
export interface FakeApps {
  readonly impl: Pick<ServiceImpl<typeof ApplicationService>, 'findOwnedApplications'>;
  /** Makes ids of new applications of an account. */
  createApplications(accountId: string, count: number): string[];
  /** Makes each question fail with the error from now on. */
  failWith(err: Error | undefined): void;
  /** `x-request-id` of each question so far. */
  readonly requestIds: string[];
}

export function createFakeApps(): FakeApps {
  const owners = new Map<string, string>();
  const requestIds: string[] = [];
  let failure: Error | undefined;
  return {
    impl: {
      findOwnedApplications({ accountId, applicationIds }, call) {
        if (failure) throw failure;
        requestIds.push(call.requestHeader.get('x-request-id') ?? '');
        return { applicationIds: applicationIds.filter((id) => owners.get(id) === accountId) };
      },
    },
    createApplications(accountId, count) {
      const ids = Array.from({ length: count }, () => crypto.randomUUID());
      for (const id of ids) owners.set(id, accountId);
      return ids;
    },
    failWith(err) {
      failure = err;
    },
    requestIds,
  };
}
