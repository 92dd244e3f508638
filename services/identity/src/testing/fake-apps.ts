import { once } from 'node:events';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

const PAGE_SIZE = 3;

type Impl = Pick<ServiceImpl<typeof ApplicationService>, 'findOwnedApplications' | 'listDeletedApplications'>;
export type FakeApps = ReturnType<typeof createFakeApps>;

/** The apps service as far as identity calls it: owners and deletions of applications. */
export function createFakeApps() {
  const owners = new Map<string, string>();
  const deletions: Array<{ readonly accountId: string; readonly applicationId: string; readonly deletedAt: Date }> = [];
  let failure: Error | undefined;
  const impl: Impl = {
    findOwnedApplications({ accountId, applicationIds }, call) {
      if (failure) throw failure;
      fake.requestIds.push(call.requestHeader.get('x-request-id') ?? '');
      return { applicationIds: applicationIds.filter((id) => owners.get(id) === accountId) };
    },
    async listDeletedApplications({ deletedSince, pageToken }, { signal }) {
      if (failure) throw failure;
      const since = deletedSince ? timestampDate(deletedSince) : new Date(0);
      if (pageToken === '') fake.deletedSince.push(since);
      if (fake.isSilent) await once(signal, 'abort');
      const found = deletions.filter(({ deletedAt }) => deletedAt >= since);
      const next = Number(pageToken) + PAGE_SIZE;
      const page = found.slice(Number(pageToken), next);
      const applications = page.map((deletion) => ({ ...deletion, deletedAt: timestampFromDate(deletion.deletedAt) }));
      return { applications, nextPageToken: next < found.length ? String(next) : '' };
    },
  };
  const fake = {
    impl,
    createApplications(accountId: string, count: number): string[] {
      const ids = Array.from({ length: count }, () => crypto.randomUUID());
      for (const id of ids) owners.set(id, accountId);
      return ids;
    },
    deleteApplication(accountId: string, applicationId: string, deletedAt: Date): void {
      owners.delete(applicationId);
      deletions.push({ accountId, applicationId, deletedAt });
    },
    /** Makes each call fail with the error from now on. */
    failWith(err: Error | undefined): void {
      failure = err;
    },
    /** Leaves calls for deletions without a response. */
    isSilent: false,
    /** `x-request-id` of the calls for owners. */
    requestIds: [] as string[],
    /** How far back the calls for deletions went, by their first pages. */
    deletedSince: [] as Date[],
  };
  return fake;
}
