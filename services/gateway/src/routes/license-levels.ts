import { z } from 'zod';
import type { Clients } from '../clients.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { withApplication } from './application-access.ts';
import { applicationQuery, trimmedText } from './schemas.ts';

const TAG = 'License levels';

const levels = z
  .array(trimmedText(1, 16, 'License level, 1 to 16 characters after trimming.'))
  .min(1)
  .refine((list) => new Set(list).size === list.length, 'must not have a level twice')
  .meta({ uniqueItems: true });

/** License levels of an application (specification 4.1, rule 3). */
export function licenseLevelRoutes(clients: Clients): Route[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/v1/panel/get-application-license-levels',
      operationId: 'listLicenseLevels',
      access: 'applications:read',
      tag: TAG,
      summary: 'List the license levels of an application',
      query: applicationQuery,
      data: z.array(z.string()).meta({ examples: [['Basic', 'Pro']] }),
      message: 'Successfully fetched application license levels',
      handle: (request) =>
        withApplication(clients, request, request.query.applicationId, async (ref) => {
          const found = await clients.applications.listLicenseLevels(ref, request.call);
          return found.levels;
        }),
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/panel/create-application-license-levels',
      operationId: 'saveLicenseLevels',
      access: 'applications:update',
      tag: TAG,
      summary: 'Replace the license levels of an application',
      description: 'The whole set is replaced at once, in the order given.',
      query: applicationQuery,
      body: z.strictObject({ levels }),
      examples: { levels: { levels: ['Basic', 'Pro'] } },
      message: 'License levels save successfully',
      handle: (request) =>
        withApplication(clients, request, request.query.applicationId, async (ref) => {
          await clients.applications.replaceLicenseLevels({ ...ref, levels: request.body.levels }, request.call);
        }),
    }),
  ];
}
