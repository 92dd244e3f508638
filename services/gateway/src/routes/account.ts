import { z } from 'zod';
import { countPasswordFailures } from '../authentication/sign-in-failures.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { ownerProof } from '../routing/schemas.ts';

const deleteBody = z.strictObject(ownerProof);

export function accountRoutes(context: RouteContext) {
  const { clients, limits, cookies } = context;
  return {
    deleteAccount: defineRoute('DELETE /api/v1/auth/account', 'session', {
      summary: 'Delete the account',
      description: [
        'The account and all it owns are gone for every route: sessions, management keys, applications with their runtime keys, files, avatar.',
        'Live clients of its applications are notified and disconnected. The username and the email are free again.',
      ].join(' '),
      limit: { limit: limits.signIn, per: 'ip' },
      body: deleteBody,
      examples: { withCode: { password: 'analytical engine', code: '123456' } },
      message: 'Account deleted.',
      handle: async (request) => {
        const { body, reply } = request;
        await countPasswordFailures(context, request, (session) => clients.accounts.deleteAccount({ ...session, ...body }));
        cookies.clear(reply, 'session');
      },
    }),
  };
}
