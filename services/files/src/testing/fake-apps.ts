import { randomUUID } from 'node:crypto';
import { createRouterTransport, type ServiceImpl } from '@connectrpc/connect';
import { ApplicationService, type UsageCounts } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ReleaseService } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/** Names an application of an account. */
export interface OwnedRef {
  readonly accountId: string;
  readonly applicationId: string;
}

export type FakeApps = ReturnType<typeof createFakeApps>;

type Impl = Pick<ServiceImpl<typeof ApplicationService>, 'findOwnedApplications' | 'listDeletedApplications' | 'recordUsage'>;

/** Stands for the apps service: knows who owns what, and what was deleted. */
export function createFakeApps() {
  const owners = new Map<string, string>();
  /** `x-request-id` of each query so far. */
  const requestIds: string[] = [];
  /** The log of deletions. */
  const deletions: OwnedRef[] = [];
  /** Usage that was reported. */
  const usage: Array<Pick<UsageCounts, 'applicationId' | 'uploads' | 'downloads'>> = [];
  /** Files that a published release needs. */
  const needed = new Set<string>();
  /** Files whose replacement was announced, at each attempt. */
  const replaced: string[] = [];
  let failure: Error | undefined;
  const impl: Impl = {
    async findOwnedApplications({ accountId, applicationIds }, call) {
      requestIds.push(call.requestHeader.get('x-request-id') ?? '');
      if (failure) throw failure;
      return { applicationIds: applicationIds.filter((id) => owners.get(id) === accountId) };
    },
    recordUsage({ counts }) {
      usage.push(...counts.map(({ applicationId, uploads, downloads }) => ({ applicationId, uploads, downloads })));
      return {};
    },
    listDeletedApplications: () => ({ applications: deletions }),
  };
  return {
    impl,
    transport: createRouterTransport(({ service }) => {
      service(ApplicationService, impl);
      service(ReleaseService, {
        detachFile({ fileId, isReplaced }) {
          if (isReplaced) replaced.push(fileId);
          if (failure) throw failure;
          return { isNeeded: needed.has(fileId) };
        },
      });
    }),
    needed,
    replaced,
    usage,
    /** Makes an application, of a new account unless one is named. */
    createOwned(accountId: string = randomUUID()): OwnedRef {
      const applicationId = randomUUID();
      owners.set(applicationId, accountId);
      return { accountId, applicationId };
    },
    delete: (applicationId: string) => void owners.delete(applicationId),
    /** Makes each query fail with the error from now on. */
    failWith(err: Error | undefined) {
      failure = err;
    },
    requestIds,
    deletions,
  };
}
