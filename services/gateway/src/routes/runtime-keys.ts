import { ApplicationService, RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { z } from 'zod';
import { setLimitHeaders, tighter, toLimitState } from '../rate-limit/rate-limits.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';

const HOUR_MS = 3_600_000;

export function runtimeKeyRoutes({ clients: { applications } }: RouteContext) {
  return [
    defineRoute('PATCH /api/v1/panel/update-api-keys', 'applications:update', {
      operationId: 'rotateRuntimeKey',
      application: 'query',
      summary: 'Rotate a runtime key of an application',
      description:
        'The old key is rejected from then on, and connections opened with an old socket key are closed. Two rotations an hour for each application, both types together.',
      body: z.strictObject({ type: z.enum(['socketKey', 'httpKey']) }),
      examples: { socketKey: { type: 'socketKey' }, httpKey: { type: 'httpKey' } },
      message: 'Successfully update api key',
      failures: [ApplicationService.method.rotateRuntimeKey],
      handle: async ({ application, body, limitState, reply }) => {
        const type = body.type === 'socketKey' ? RuntimeKeyType.SOCKET : RuntimeKeyType.HTTP;
        const { rotationsMax, rotationsLeft, resetSeconds } = await applications.rotateRuntimeKey({ ...application, type });
        const limit = { name: 'rotations', max: rotationsMax, windowMs: HOUR_MS };
        setLimitHeaders(reply, tighter(limitState, toLimitState(limit, rotationsMax - rotationsLeft, resetSeconds * 1_000)));
      },
    }),
  ];
}
