import { z } from 'zod';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { idOf, timestamp } from '../routing/schemas.ts';

const URL = '/api/v1/auth/sessions';

const openSession = z
  .object({
    id: idOf('session', 'Session id. It is not secret.'),
    current: z.boolean().meta({ description: 'Whether the request was made with this session.' }),
    createdAt: timestamp,
    lastUsedAt: timestamp.meta({ description: 'Exact to a minute.' }),
    lastUsedIp: z.nullable(z.string()).meta({ examples: ['203.0.113.7'] }),
    userAgent: z.nullable(z.string()).meta({
      description: '`User-Agent` of the client, up to 256 characters without invisible ones. Any client may send any text.',
      examples: ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'],
    }),
  })
  .meta({ id: 'OpenSession', description: 'A session of the account, without its secrets.' });

const params = z.object({ id: idOf('session', 'Id of the session, from `listSessions`.') });

export const sessionRoutes = ({ clients: { accounts }, cookies }: RouteContext) => ({
  listSessions: defineRoute(`GET ${URL}`, 'session', {
    summary: 'List sessions',
    description: 'The sessions of the account that have not ended, up to 100: this one, then those used last.',
    isLarge: true,
    data: z.array(openSession),
    message: 'Successfully fetched sessions.',
    handle: async ({ principal: { accountId, credentialId: sessionId } }) => {
      const { sessions } = await accounts.listSessions({ accountId, sessionId });
      return sessions.map((one) => ({ ...one, current: one.id === sessionId }));
    },
  }),
  endSession: defineRoute(`DELETE ${URL}/:id`, 'session', {
    summary: 'End a session',
    description: 'The session is rejected from the next request on. If it is this one, its cookie is cleared.',
    params,
    message: 'Session ended.',
    handle: async ({ principal: { accountId, credentialId }, params: { id: sessionId }, reply }) => {
      await accounts.endSession({ accountId, sessionId });
      if (sessionId.toLowerCase() === credentialId) cookies.clear(reply, 'session');
    },
  }),
});
