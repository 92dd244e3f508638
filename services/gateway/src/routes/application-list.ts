import { APPLICATION_SORTS, withDescending } from '@latchkey/contract/list-order';
import { APPLICATIONS_PAGE_SIZE } from '@latchkey/contract/page-size';
import { STATUSES } from '@latchkey/contract/setting-definitions';
import { ApplicationStatus, SummaryOrder } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { idOf, nameSearch, pageNumber, timestamp } from '../routing/schemas.ts';

const ORDERS = {
  name: SummaryOrder.NAME,
  status: SummaryOrder.STATUS,
  version: SummaryOrder.VERSION,
  files: SummaryOrder.RANK,
  storage: SummaryOrder.RANK,
  updatedAt: SummaryOrder.UPDATED_AT,
} as const satisfies Record<(typeof APPLICATION_SORTS)[number], SummaryOrder>;

const row = z
  .object({
    id: idOf('application', 'Application id.'),
    name: z.string().meta({ examples: ['Photo Editor'] }),
    status: z.enum(STATUSES),
    version: z.string().meta({ examples: ['1.0'] }),
    files: z.int().meta({ examples: [12] }),
    storedMiB: z.int().meta({ description: 'Charged storage of its files, in MiB.', examples: [48] }),
    updatedAt: timestamp,
  })
  .meta({ id: 'ApplicationListItem' });

export const applicationListRoutes = ({ clients: { applications, files } }: RouteContext) => [
  defineRoute('GET /api/v1/panel/list-applications', 'applications:read', {
    operationId: 'listApplicationsPage',
    summary: 'List applications for people',
    description: `A page of ${APPLICATIONS_PAGE_SIZE} applications with status, version, files and storage, without keys; for a restricted key, only those it may use. A page past the end is empty.`,
    query: z.object({
      page: pageNumber.optional(),
      search: nameSearch('photo'),
      sort: z
        .enum(withDescending(APPLICATION_SORTS))
        .default('name')
        .meta({ description: '`-` for descending. Applications that are equal follow by creation.', examples: ['name'] }),
    }),
    data: z.array(row),
    extraFields: { totalPages: z.int().meta({ examples: [1] }) },
    message: 'Successfully fetched applications',
    handle: async ({ principal, query: { page = 1, search, sort } }) => {
      const { accountId, allApplications, applicationIds } = principal;
      const name = sort.replace('-', '') as keyof typeof ORDERS;
      const order = ORDERS[name];
      const all = order === SummaryOrder.RANK ? (await files.listApplicationUsages({ accountId })).usages : undefined;
      const rankOf = ({ fileCount, chargedMib }: { fileCount: bigint; chargedMib: bigint }) =>
        name === 'files' ? fileCount : chargedMib;
      const { summaries, total } = await applications.listApplicationSummaries({
        ...{ accountId, search, order, page, descending: sort.startsWith('-'), pageSize: APPLICATIONS_PAGE_SIZE },
        ...(!allApplications && { filter: { applicationIds: [...applicationIds] } }),
        ranks: all?.map((usage) => ({ applicationId: usage.applicationId, rank: rankOf(usage) })) ?? [],
      });
      const ids = summaries.map(({ id }) => id);
      const shown = all ?? (ids.length > 0 ? (await files.listApplicationUsages({ accountId, applicationIds: ids })).usages : []);
      const usages = new Map(shown.map((usage) => [usage.applicationId, usage]));
      const data = summaries.map((summary) => ({
        ...summary,
        status: summary.status === ApplicationStatus.PAUSED ? 'paused' : 'online',
        files: usages.get(summary.id)?.fileCount ?? 0,
        storedMiB: usages.get(summary.id)?.chargedMib ?? 0,
      }));
      return { data, extraFields: { totalPages: Math.ceil(total / APPLICATIONS_PAGE_SIZE) } };
    },
  }),
];
