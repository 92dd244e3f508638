import { createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it } from 'vitest';
import { PATHS_TO_OUR_SERVER } from '../testing/paths.ts';
import { startTestServer, testRoute } from '../testing/servers.ts';
import type { PlainRoute } from './plain-route.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** What a gateway would not take of its clients either. */
const WRONG = ['x'.repeat(129), 'x'.repeat(12_000), 'a b', 'a"b', '{}'];

describe.each(PATHS_TO_OUR_SERVER)('the id of a call, $name', ({ open }) => {
  /** Makes a call with these headers; answers the id that the handler was told of and the log has. */
  async function idOf(headers: Record<string, string>): Promise<unknown> {
    const seen: unknown[] = [];
    const route = testRoute(ApplicationService, {
      async deleteApplication(_req, { requestHeader }) {
        seen.push(requestHeader.get('x-request-id'));
        return {};
      },
    });
    const { transport, lines } = await open([route]);
    await createClient(ApplicationService, transport).deleteApplication({}, { headers });
    expect(seen).toHaveLength(1);
    expect(lines.map(({ requestId }) => requestId)).toEqual(seen);
    return seen[0];
  }

  it('is the one that its caller gives where that is short and plain', async () => {
    expect(await idOf({ 'x-request-id': 'a.b_C-9' })).toBe('a.b_C-9');
  });

  it.each(WRONG)('is one of its own in place of one that is long or odd (%#)', async (given) => {
    expect(await idOf({ 'x-request-id': given })).toMatch(UUID);
  });

  it('is one of its own where its caller gives none, and another for each', async () => {
    const [one, other] = [await idOf({}), await idOf({})];
    expect(one).toMatch(UUID);
    expect(other).toMatch(UUID);
    expect(other).not.toBe(one);
  });
});

it('a plain route, which anyone may ask, gives an id of its own in place of one that is none', async () => {
  const route: PlainRoute = {
    method: 'GET',
    path: '/open',
    needsCredential: false,
    handle: async (_req, res, requestId) => void res.end(requestId),
  };
  const { url, lines } = await startTestServer([], { plainRoutes: [route] });
  for (const wrong of WRONG) {
    const answer = await fetch(`${url}/open`, { headers: { 'x-request-id': wrong } });
    expect(await answer.text()).toMatch(UUID);
  }
  await eventually(() => expect(lines).toHaveLength(WRONG.length));
  for (const { requestId } of lines) expect(requestId).toMatch(UUID);
});
