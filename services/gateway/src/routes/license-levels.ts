import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import type { Clients } from '../clients.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { applicationQuery, trimmedText } from './schemas.ts';

const TAG = 'License levels';

const levels = z
  .array(trimmedText(1, 16, 'License level, 1 to 16 characters after trimming.'))
  .min(1)
  .refine((list) => new Set(list).size === list.length, 'must not have a level twice')
  .meta({ uniqueItems: true });

/** License levels of an application (specification 4.1, rule 3). */
export function licenseLevelRoutes({ applications }: Clients): Route[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/v1/panel/get-application-license-levels',
      operationId: 'listLicenseLevels',
      access: 'applications:read',
      application: 'query',
      tag: TAG,
      summary: 'List the license levels of an application',
      query: applicationQuery,
      data: z.array(z.string()).meta({ examples: [['Basic', 'Pro']] }),
      message: 'Successfully fetched application license levels',
      failures: [ApplicationService.method.listLicenseLevels],
      handle: async ({ application }) => (await applications.listLicenseLevels(application)).levels,
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/panel/create-application-license-levels',
      operationId: 'saveLicenseLevels',
      access: 'applications:update',
      application: 'query',
      tag: TAG,
      summary: 'Replace the license levels of an application',
      description: 'The whole set is replaced at once, in the order given.',
      query: applicationQuery,
      body: z.strictObject({ levels }),
      examples: { levels: { levels: ['Basic', 'Pro'] } },
      message: 'License levels save successfully',
      failures: [ApplicationService.method.replaceLicenseLevels],
      handle: async ({ application, body }) => {
        await applications.replaceLicenseLevels({ ...application, levels: body.levels });
      },
    }),
  ];
}
