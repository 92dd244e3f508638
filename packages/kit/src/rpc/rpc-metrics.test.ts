import { createClient } from '@connectrpc/connect';
import { ApplicationService, DeleteApplicationResponseSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, expect, it } from 'vitest';
import { defineErrors } from '../errors.ts';
import { type Exposition, startMeasuring } from '../metrics/instrument.ts';
import { PATHS_TO_OUR_SERVER } from '../testing/paths.ts';
import { CREDENTIAL, startTestServer, testRoute } from '../testing/servers.ts';
import { bodyRoute } from './body-call.ts';
import { observeRoute } from './observed-route.ts';

let recorder: Exposition;
beforeAll(async () => {
  recorder = await startMeasuring('test');
});

async function countRefused(): Promise<number> {
  const [, count] = /^latchkey_rpc_overload_refusals_total (\d+)$/m.exec(await recorder.render()) ?? [];
  return Number(count);
}

it.each(PATHS_TO_OUR_SERVER)('counts the calls that are refused as there are too many, $name', async ({ open }) => {
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  let calls = 0;
  const route = testRoute(ApplicationService, {
    async deleteApplication() {
      calls += 1;
      await mayEnd;
      return {};
    },
  });
  const { transport } = await open([route], { callsAtOnce: 1 });
  const client = createClient(ApplicationService, transport);
  const before = await countRefused();
  const held = client.deleteApplication({});
  await eventually(() => calls === 1);
  for (let i = 0; i < 3; i += 1) await expect(client.deleteApplication({})).rejects.toThrow();
  expect((await countRefused()) - before).toBe(3);
  end();
  await held;
  await client.deleteApplication({});
  expect((await countRefused()) - before).toBe(3);
});

it('says of bodies how they ended as the caller hears it', async () => {
  const errors = defineErrors({ too_much: { kind: 'too_large', message: 'It is too much' } });
  const endings: Readonly<Record<string, () => object>> = {
    well: () => ({}),
    refused: () => {
      throw errors.too_much();
    },
    broken: () => {
      throw new Error('a defect');
    },
  };
  const route = bodyRoute({
    path: '/body',
    output: DeleteApplicationResponseSchema,
    handle: async (req) => endings[String(req.headers['x-ending'])]?.() ?? {},
  });
  const { url } = await startTestServer([], { plainRoutes: [observeRoute(route)] });
  const statuses = await Promise.all(
    Object.keys(endings).map(async (ending) => {
      const headers = { authorization: `Bearer ${CREDENTIAL}`, 'x-ending': ending };
      return (await fetch(`${url}/body`, { method: 'PUT', headers })).status;
    }),
  );
  expect(statuses).toEqual([200, 429, 500]);
  const counted = /^latchkey_body_duration_seconds_count{route="PUT [/]body",code="(.*)"} 1$/gm;
  const codes = [...(await recorder.render()).matchAll(counted)].map(([, code]) => code);
  expect(codes.toSorted()).toEqual(['internal', 'ok', 'resource_exhausted']);
});
