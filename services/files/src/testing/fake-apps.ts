import { randomUUID } from 'node:crypto';
import { createRouterTransport, type ServiceImpl, type Transport } from '@connectrpc/connect';
import { ApplicationService, type UsageCounts } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ReleaseService } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/** Names an application of an account. */
export interface OwnedRef {
  readonly accountId: string;
  readonly applicationId: string;
}

/** Stands for the apps service: knows who owns what, and what was deleted. */
export interface FakeApps {
  readonly impl: Pick<
    ServiceImpl<typeof ApplicationService>,
    'findOwnedApplications' | 'listDeletedApplications' | 'recordUsage'
  >;
  readonly transport: Transport;
  /** Makes an application, of a new account unless one is named. */
  createOwned(accountId?: string): OwnedRef;
  /** Deletes an application. */
  delete(applicationId: string): void;
  /** Files that a published release needs. */
  readonly needed: Set<string>;
  /** Files whose replacement was announced, at each attempt. */
  readonly replaced: string[];
  /** Usage that was reported. */
  readonly usage: Array<Pick<UsageCounts, 'applicationId' | 'uploads' | 'downloads'>>;
  /** The log of deletions. */
  readonly deletions: OwnedRef[];
  /** Makes each query fail with the error from now on. */
  failWith(err: Error | undefined): void;
  /** `x-request-id` of each query so far. */
  readonly requestIds: string[];
}

export function createFakeApps(): FakeApps {
  const owners = new Map<string, string>();
  const requestIds: string[] = [];
  const deletions: OwnedRef[] = [];
  const usage: FakeApps['usage'] = [];
  const needed = new Set<string>();
  const replaced: string[] = [];
  let failure: Error | undefined;
  const impl: FakeApps['impl'] = {
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
    createOwned(accountId = randomUUID()) {
      const applicationId = randomUUID();
      owners.set(applicationId, accountId);
      return { accountId, applicationId };
    },
    delete: (applicationId) => void owners.delete(applicationId),
    failWith(err) {
      failure = err;
    },
    requestIds,
    deletions,
  };
}
