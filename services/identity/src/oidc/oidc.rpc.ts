import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { toMessage, toSignedIn } from '../account/account.rpc.ts';
import type { IdentityContext } from '../context.ts';
import { listLinks, unlink } from './links.ts';
import { completeSignIn, type FlowOutcome, finishFlow, startFlow } from './oidc.ts';

export function oidcRpc(ctx: IdentityContext): ServiceImpl<typeof OidcService> {
  return {
    async startOidc(request, call) {
      const { authorizationUrl, flow } = await startFlow(actingFor(ctx, call), request);
      return { authorizationUrl, flow: flow.text, expiresAt: timestampFromDate(flow.expiresAt) };
    },
    async finishOidc(request, call) {
      return { outcome: toOutcome(await finishFlow(actingFor(ctx, call), request)) };
    },
    async completeOidc(request, call) {
      return { signedIn: toSignedIn(await completeSignIn(actingFor(ctx, call), request)) };
    },
    async listOidcLinks({ accountId }) {
      const links = await listLinks(ctx, accountId);
      return { links: links.map(({ created_at, ...link }) => ({ ...link, createdAt: timestampFromDate(created_at) })) };
    },
    async unlinkOidc(request, call) {
      return { removed: await unlink(actingFor(ctx, call), request) };
    },
  };
}

function toOutcome(outcome: FlowOutcome) {
  switch (outcome.case) {
    case 'signedIn':
      return { case: outcome.case, value: toSignedIn(outcome) };
    case 'linked':
      return { case: outcome.case, value: { account: toMessage(outcome.account), csrfToken: outcome.csrfToken } };
    case 'pending': {
      const { text, expiresAt } = outcome.pending;
      return { case: outcome.case, value: { pending: text, expiresAt: timestampFromDate(expiresAt) } };
    }
  }
}
