import type { APPLICATION_SORTS } from '@latchkey/contract/list-order';
import { APPLICATIONS_PAGE_SIZE } from '@latchkey/contract/page-size';
import { STATUSES } from '@latchkey/contract/setting-definitions';
import { ApplicationStatus, SummaryOrder } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { idOf, pageQuery, timestamp } from '../routing/schemas.ts';

interface Order {
  readonly order: SummaryOrder;
  readonly rank?: 'fileCount' | 'chargedMib';
}

/** Orders of the protocol. `rank` is a property of usages, which the files service has. */
const ORDERS: Readonly<Record<(typeof APPLICATION_SORTS)[number], Order>> = {
  name: { order: SummaryOrder.NAME },
  status: { order: SummaryOrder.STATUS },
  version: { order: SummaryOrder.VERSION },
  files: { order: SummaryOrder.RANK, rank: 'fileCount' },
  storage: { order: SummaryOrder.RANK, rank: 'chargedMib' },
  updatedAt: { order: SummaryOrder.UPDATED_AT },
};

const row = component('ApplicationListItem', {
  id: idOf('application', 'Application id.'),
  name: z.string().meta({ examples: ['Photo Editor'] }),
  status: z.enum(STATUSES),
  version: z.string().meta({ examples: ['1.0'] }),
  files: z.int().meta({ examples: [12] }),
  storedMiB: z.int().meta({ description: 'Charged storage of its files, in MiB.', examples: [48] }),
  updatedAt: timestamp,
});

export const applicationListRoutes = ({ clients: { applications, files } }: RouteContext) => ({
  listApplicationsPage: defineRoute('GET /api/v1/panel/list-applications', 'applications:read', {
    summary: 'List applications for people',
    description: `A page of ${APPLICATIONS_PAGE_SIZE} applications with status, version, files and storage, without keys; for a restricted key, only those it may use. A page past the end is empty.`,
    query: pageQuery(ORDERS, 'Applications', 'photo', 'name'),
    data: z.array(row),
    pageSize: APPLICATIONS_PAGE_SIZE,
    message: 'Successfully fetched applications',
    handle: async ({ principal, query }) => {
      const { accountId, allApplications, applicationIds } = principal;
      const { rank, order } = query.order;
      const ranked = rank && (await files.listApplicationUsages({ accountId })).usages;
      const { summaries, total } = await applications.listApplicationSummaries({
        ...{ ...query, accountId, order, pageSize: APPLICATIONS_PAGE_SIZE },
        ...(!allApplications && { filter: { applicationIds: [...applicationIds] } }),
        ...(ranked && { ranks: ranked.map((usage) => ({ applicationId: usage.applicationId, rank: usage[rank] })) }),
      });
      const ids = summaries.map(({ id }) => id);
      const shown =
        ranked ?? (ids.length > 0 ? (await files.listApplicationUsages({ accountId, applicationIds: ids })).usages : []);
      const usages = new Map(shown.map((usage) => [usage.applicationId, usage]));
      const data = summaries.map((summary) => ({
        ...summary,
        status: summary.status === ApplicationStatus.PAUSED ? 'paused' : 'online',
        files: usages.get(summary.id)?.fileCount ?? 0,
        storedMiB: usages.get(summary.id)?.chargedMib ?? 0,
      }));
      return { data, total };
    },
  }),
});
