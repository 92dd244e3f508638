import { once } from 'node:events';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';

/** Stands for the apps service: knows who owns what and what was deleted when, and nothing else. */
export interface FakeApps {
  readonly impl: Pick<ServiceImpl<typeof ApplicationService>, 'findOwnedApplications' | 'listDeletedApplications'>;
  /** Makes ids of new applications of an account. */
  createApplications(accountId: string, count: number): string[];
  /** Deletes an application at a time: it is nobody's any more, and listed as deleted, in small pages. */
  deleteApplication(accountId: string, applicationId: string, deletedAt: Date): void;
  /** Makes each question fail with the error from now on. */
  failWith(err: Error | undefined): void;
  /** Leaves questions about deletions unanswered from now on, or answers again. */
  stayingSilent: boolean;
  /** Number of unanswered questions that were given up. */
  givenUp: number;
  /** `x-request-id` of each question about owners so far. */
  readonly requestIds: string[];
  /** How far back each question about deletions went, by its first page. */
  readonly lookedBackTo: Date[];
}

const PAGE_SIZE = 3;

export function createFakeApps(): FakeApps {
  const owners = new Map<string, string>();
  const deletions: Array<{ readonly accountId: string; readonly applicationId: string; readonly deletedAt: Date }> = [];
  const requestIds: string[] = [];
  const lookedBackTo: Date[] = [];
  let failure: Error | undefined;
  const fake: FakeApps = {
    impl: {
      findOwnedApplications({ accountId, applicationIds }, call) {
        if (failure) throw failure;
        requestIds.push(call.requestHeader.get('x-request-id') ?? '');
        return { applicationIds: applicationIds.filter((id) => owners.get(id) === accountId) };
      },
      async listDeletedApplications({ deletedSince, pageToken }, { signal }) {
        if (failure) throw failure;
        const since = deletedSince ? timestampDate(deletedSince) : new Date(0);
        if (pageToken === '') lookedBackTo.push(since);
        if (fake.stayingSilent) {
          await once(signal, 'abort');
          fake.givenUp += 1;
        }
        const start = Number(pageToken);
        const found = deletions.filter(({ deletedAt }) => deletedAt >= since);
        const next = start + PAGE_SIZE;
        const applications = found.slice(start, next).map((deletion) => {
          return { ...deletion, deletedAt: timestampFromDate(deletion.deletedAt) };
        });
        return { applications, nextPageToken: next < found.length ? String(next) : '' };
      },
    },
    createApplications(accountId, count) {
      const ids = Array.from({ length: count }, () => crypto.randomUUID());
      for (const id of ids) owners.set(id, accountId);
      return ids;
    },
    deleteApplication(accountId, applicationId, deletedAt) {
      owners.delete(applicationId);
      deletions.push({ accountId, applicationId, deletedAt });
    },
    failWith(err) {
      failure = err;
    },
    stayingSilent: false,
    givenUp: 0,
    requestIds,
    lookedBackTo,
  };
  return fake;
}
