import { RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { setLimitHeaders, tighter, toLimitState } from '../rate-limit/rate-limits.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { overlapSeconds } from '../routing/schemas.ts';

const HOUR_MS = 3_600_000;

const TYPES = { socketKey: RuntimeKeyType.SOCKET, httpKey: RuntimeKeyType.HTTP };
const type = z.enum(['socketKey', 'httpKey']);

export const runtimeKeyRoutes = ({ clients: { applications } }: RouteContext) => ({
  rotateRuntimeKey: defineRoute('PATCH /api/v1/panel/update-api-keys', 'applications:update', {
    application: 'query',
    summary: 'Rotate a runtime key of an application',
    description:
      'The old key is rejected from then on, or after `overlapSeconds`, and connections opened with an old socket key are closed. Two rotations an hour for each application, both types together.',
    body: z.strictObject({
      type,
      overlapSeconds,
      endPrevious: z.boolean().optional().meta({
        description: 'True: the overlap of an earlier rotation ends now. Otherwise it makes a 409, `overlap_active`.',
      }),
    }),
    examples: {
      socketKey: { type: 'socketKey' },
      httpKey: { type: 'httpKey' },
      withOverlap: { type: 'httpKey', overlapSeconds: 86_400 },
    },
    message: 'Successfully update api key',
    handle: async ({ application, body, limitState, reply }) => {
      const { overlapSeconds = 0, endPrevious = false } = body;
      const request = { ...application, type: TYPES[body.type], overlapSeconds, endPrevious };
      const { rotationsMax, rotationsLeft, resetSeconds } = await applications.rotateRuntimeKey(request);
      const limit = { name: 'rotations', max: rotationsMax, windowMs: HOUR_MS };
      setLimitHeaders(reply, tighter(limitState, toLimitState(limit, rotationsMax - rotationsLeft, resetSeconds * 1_000)));
    },
  }),
  endKeyOverlap: defineRoute('POST /api/v1/panel/end-key-overlap', 'applications:update', {
    application: 'query',
    summary: 'End the overlap of a rotated runtime key',
    description: 'The previous key is rejected from then on. Without an overlap, nothing changes.',
    body: z.strictObject({ type }),
    examples: { socketKey: { type: 'socketKey' } },
    message: 'Overlap ended',
    handle: ({ application, body }) => applications.endKeyOverlap({ ...application, type: TYPES[body.type] }),
  }),
});
