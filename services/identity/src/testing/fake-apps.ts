import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

const PAGE_SIZE = 3;

type Impl = Pick<
  ServiceImpl<typeof ApplicationService>,
  'findOwnedApplications' | 'listDeletedApplications' | 'deleteAccountApplications'
>;
export type FakeApps = ReturnType<typeof createFakeApps>;

/** The apps service as far as identity calls it: owners and deletions of applications. */
export function createFakeApps() {
  const owners = new Map<string, string>();
  const deletions: Array<{ readonly accountId: string; readonly applicationId: string; readonly deletedAt: Date }> = [];
  const impl: Impl = {
    findOwnedApplications({ accountId, applicationIds }, call) {
      if (fake.failure) throw fake.failure;
      fake.requestIds.push(call.requestHeader.get('x-request-id') ?? '');
      return { applicationIds: applicationIds.filter((id) => owners.get(id) === accountId) };
    },
    listDeletedApplications({ deletedSince, pageToken }) {
      const since = deletedSince ? timestampDate(deletedSince) : new Date(0);
      const found = deletions.filter(({ deletedAt }) => deletedAt >= since);
      const next = Number(pageToken) + PAGE_SIZE;
      const page = found.slice(Number(pageToken), next);
      const applications = page.map((deletion) => ({ ...deletion, deletedAt: timestampFromDate(deletion.deletedAt) }));
      return { applications, nextPageToken: next < found.length ? String(next) : '' };
    },
    async deleteAccountApplications({ accountId }, call) {
      fake.actors.push(call.requestHeader.get('x-latchkey-actor'));
      if (fake.failure) throw fake.failure;
      await fake.pause;
      const [id] = [...owners].find(([, owner]) => owner === accountId) ?? [];
      if (id !== undefined) owners.delete(id);
      return { hasMore: id !== undefined };
    },
  };
  const fake = {
    impl,
    /** Applications of an account. */
    countOf: (accountId: string) => [...owners.values()].filter((owner) => owner === accountId).length,
    createApplications(accountId: string, count: number): string[] {
      const ids = Array.from({ length: count }, () => crypto.randomUUID());
      for (const id of ids) owners.set(id, accountId);
      return ids;
    },
    deleteApplication(accountId: string, applicationId: string, deletedAt: Date): void {
      owners.delete(applicationId);
      deletions.push({ accountId, applicationId, deletedAt });
    },
    /** The error of calls for owners and of deletions. */
    failure: undefined as Error | undefined,
    /** Gate of deletions. */
    pause: undefined as Promise<void> | undefined,
    /** `x-request-id` of the calls for owners. */
    requestIds: [] as string[],
    /** `x-latchkey-actor` of the deletions. */
    actors: [] as (string | null)[],
  };
  return fake;
}
