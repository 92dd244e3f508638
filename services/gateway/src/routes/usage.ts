import { z } from 'zod';
import { checkOwned } from '../routing/resolve-application.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationId, date, dayCount } from '../routing/schemas.ts';

const count = (description: string, example: number) => z.int().meta({ description, examples: [example] });

const dailyUsage = component('DailyUsage', {
  date,
  events: count('Events that its clients are sent.', 3),
  downloads: count('Downloads of its files.', 240),
  uploads: count('Files that were uploaded.', 2),
  clientsMax: count('The most live clients at one moment.', 57),
});

export const usageRoutes = ({ clients, countLiveClients }: RouteContext) => ({
  getUsage: defineRoute('GET /api/v1/panel/get-usage', 'applications:read', {
    application: 'query',
    summary: 'Get the usage of an application by day',
    description: [
      'A row for each day, oldest first; today is the last. Usage is counted in the background, and shown within 15 seconds.',
      'A download is counted when it begins, and once if the file is fetched in parts. With S3, downloads do not pass the service: each URL that is created counts.',
    ].join('\n\n'),
    query: z.object({ applicationId, days: dayCount }),
    data: z.array(dailyUsage),
    message: 'Successfully fetched usage',
    failures: ['listDailyUsage'],
    handle: async ({ application, query: { days } }) =>
      (await clients.applications.listDailyUsage({ ...application, days })).days,
  }),
  getLiveClients: defineRoute('GET /api/v1/panel/get-live-clients', 'applications:read', {
    application: 'query',
    summary: 'Get the number of live clients of an application',
    description:
      'The clients that are connected to all nodes together, as of a second ago. Those of a node that was killed count for 8 seconds more.',
    data: z.object({
      clients: z.nullable(z.int()).meta({ description: 'Null while it is not known.', examples: [42] }),
    }),
    message: 'Successfully fetched live clients',
    failures: ['findOwnedApplications', 'application_not_found'],
    handle: async ({ application }) => {
      await checkOwned(clients, application);
      return { clients: await countLiveClients(application.applicationId).catch(() => null) };
    },
  }),
});
