import { describeLength } from '@latchkey/contract/lengths';
import { LICENSE_LEVEL, LICENSE_LEVELS_MAX } from '@latchkey/contract/license-level';
import { formatCount } from '@latchkey/kit/validation/text';
import { z } from 'zod';
import { list } from '../routing/list.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { ETAG_HEADER, ifMatchHeaders, trimmedText } from '../routing/schemas.ts';

const level = trimmedText(LICENSE_LEVEL, `License level, ${describeLength(LICENSE_LEVEL)} after trimming.`);
const levels = list(level, 1, LICENSE_LEVELS_MAX)
  .refine((names) => new Set(names).size === names.length, 'must not have a level twice')
  .meta({ uniqueItems: true });

export const licenseLevelRoutes = ({ clients: { applications } }: RouteContext) => ({
  listLicenseLevels: defineRoute('GET /api/v1/panel/get-application-license-levels', 'applications:read', {
    application: 'query',
    summary: 'List the license levels of an application',
    data: z.array(z.string()).meta({ examples: [['Basic', 'Pro']] }),
    successHeaders: ETAG_HEADER,
    message: 'Successfully fetched application license levels',
    handle: async ({ application, reply }) => {
      const { levels, etag } = await applications.listLicenseLevels(application);
      reply.header('etag', etag);
      return levels;
    },
  }),
  saveLicenseLevels: defineRoute('POST /api/v1/panel/create-application-license-levels', 'applications:update', {
    application: 'query',
    summary: 'Replace the license levels of an application',
    description: `Replaces the whole set atomically, in the order given. At most ${formatCount(LICENSE_LEVELS_MAX)} levels.`,
    headers: ifMatchHeaders,
    body: z.strictObject({ levels }),
    examples: { levels: { levels: ['Basic', 'Pro'] } },
    message: 'License levels save successfully',
    failures: ['replaceLicenseLevels'],
    handle: ({ application, body: { levels }, headers: { 'if-match': ifMatch = [] } }) =>
      applications.replaceLicenseLevels({ ...application, levels, ifMatch }),
  }),
});
