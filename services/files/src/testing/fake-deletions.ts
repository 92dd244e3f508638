import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createRouterTransport, type Transport } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { OwnedRef } from './fake-apps.ts';

/** Stands for the apps service: knows what was deleted and when, and answers in small pages. */
export interface FakeDeletions {
  readonly transport: Transport;
  /** The application was deleted at this time. */
  add(ref: OwnedRef, deletedAt: Date): void;
  /** How far back each question went, by its first page. */
  readonly asked: Date[];
  /** Makes each question fail from now on, or no longer. */
  failing: boolean;
}

const PAGE_SIZE = 3;

export function createFakeDeletions(): FakeDeletions {
  const deletions: Array<OwnedRef & { readonly deletedAt: Date }> = [];
  const fake: FakeDeletions = {
    asked: [],
    failing: false,
    add: (ref, deletedAt) => void deletions.push({ ...ref, deletedAt }),
    transport: createRouterTransport(
      ({ service }) =>
        void service(ApplicationService, {
          listDeletedApplications({ deletedSince, pageToken }) {
            if (fake.failing) throw new Error('not now');
            const since = deletedSince ? timestampDate(deletedSince) : new Date(0);
            if (pageToken === '') fake.asked.push(since);
            const start = Number(pageToken);
            const found = deletions.filter(({ deletedAt }) => deletedAt >= since);
            const applications = found.slice(start, start + PAGE_SIZE).map(({ applicationId, accountId, deletedAt }) => {
              return { applicationId, accountId, deletedAt: timestampFromDate(deletedAt) };
            });
            const next = start + PAGE_SIZE;
            return { applications, nextPageToken: next < found.length ? String(next) : '' };
          },
        }),
    ),
  };
  return fake;
}
