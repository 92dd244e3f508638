import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { OidcService, UnlinkOidcRequest } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { toMessage, toSignedIn } from '../account/account.rpc.ts';
import type { IdentityContext } from '../context.ts';
import { listLinks, unlinkAsOwner } from './links.ts';
import { completeSignIn, type FlowOutcome, finishFlow, startFlow } from './oidc.ts';
import type { OwnerProof } from './owner-proof.ts';

/** Sign-in by OpenID Connect. */
export function oidcRpc(ctx: IdentityContext): ServiceImpl<typeof OidcService> {
  return {
    async startOidc({ issuer, redirectUri, linkAccountId, ...proof }, call) {
      const request = { issuer, redirectUri, linkAccountId, ...ownerProof(proof) };
      const { authorizationUrl, flow } = await startFlow(actingFor(ctx, call), request);
      return { authorizationUrl, flow: flow.text, expiresAt: timestampFromDate(flow.expiresAt) };
    },
    async finishOidc({ flow, code, state, iss, error, ...browser }, call) {
      const { redirectUri, sessionToken } = browser;
      const answer = { code, state, iss, error };
      return { outcome: toOutcome(await finishFlow(actingFor(ctx, call), { flow, answer, redirectUri, sessionToken })) };
    },
    async completeOidc({ pending, code, previousSessionToken }, call) {
      return { signedIn: toSignedIn(await completeSignIn(actingFor(ctx, call), { pending, code, previousSessionToken })) };
    },
    async listOidcLinks({ accountId }) {
      const links = await listLinks(ctx, accountId);
      return { links: links.map(({ createdAt, ...link }) => ({ ...link, createdAt: timestampFromDate(createdAt) })) };
    },
    async unlinkOidc({ accountId, issuer, subject, ...proof }, call) {
      const { removed } = await unlinkAsOwner(actingFor(ctx, call), accountId, { issuer, subject }, ownerProof(proof));
      return { removed };
    },
  };
}

function ownerProof({ password, code, sessionId }: Pick<UnlinkOidcRequest, 'password' | 'code' | 'sessionId'>): OwnerProof {
  return { password, code, sessionId };
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
