import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { toMessage, toSignedIn } from '../account/account.rpc.ts';
import type { IdentityContext } from '../context.ts';
import { listLinks, unlinkAsOwner } from './links.ts';
import { completeSignIn, type FlowOutcome, finishFlow, startFlow } from './oidc.ts';

/** Sign-in by OpenID Connect. */
export function oidcRpc(ctx: IdentityContext): ServiceImpl<typeof OidcService> {
  return {
    async startOidc({ issuer, redirectUri, linkAccountId, password, code }) {
      const { authorizationUrl, flow } = await startFlow(ctx, { issuer, redirectUri, linkAccountId, password, code });
      return { authorizationUrl, flow: flow.text, expiresAt: timestampFromDate(flow.expiresAt) };
    },
    async finishOidc({ flow, code, state, iss, error, sessionToken }) {
      return { outcome: toOutcome(await finishFlow(ctx, { flow, answer: { code, state, iss, error }, sessionToken })) };
    },
    async completeOidc({ pending, code, previousSessionToken }) {
      return { signedIn: toSignedIn(await completeSignIn(ctx, { pending, code, previousSessionToken })) };
    },
    async listOidcLinks({ accountId }) {
      const links = await listLinks(ctx, accountId);
      return { links: links.map(({ createdAt, ...link }) => ({ ...link, createdAt: timestampFromDate(createdAt) })) };
    },
    async unlinkOidc({ accountId, issuer, subject, password, code }) {
      return { removed: await unlinkAsOwner(ctx, accountId, { issuer, subject }, { password, code }) };
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
