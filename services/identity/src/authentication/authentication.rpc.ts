import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { type AuthenticationService, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import {
  type ApiKeyPrincipal,
  authenticateApiKey,
  authenticateSession,
  type Principal,
  type SessionPrincipal,
} from './authentication.ts';

/** Who stands behind a credential. */
export function authenticationRpc(ctx: IdentityContext): ServiceImpl<typeof AuthenticationService> {
  return {
    async authenticate({ credential, clientIp }) {
      if (credential.case === 'apiKey') {
        const { principal, epoch } = await authenticateApiKey(ctx, credential.value, clientIp);
        return { principal: toApiKeyMessage(principal), epochKey: epoch.key, epoch: epoch.value };
      }
      if (credential.case === undefined) throw errors.session_invalid();
      const { principal, epoch } = await authenticateSession(ctx, credential.value);
      return { principal: toSessionMessage(principal), epochKey: epoch.key, epoch: epoch.value };
    },
  };
}

function toApiKeyMessage(principal: ApiKeyPrincipal) {
  const { scopes, allApplications, applicationIds } = principal;
  return { ...toMessage(principal), kind: PrincipalKind.API_KEY, scopes, allApplications, applicationIds };
}

function toSessionMessage(principal: SessionPrincipal) {
  return {
    ...toMessage(principal),
    kind: PrincipalKind.SESSION,
    allApplications: true,
    csrfToken: principal.csrfToken,
  };
}

function toMessage({ accountId, username, credentialId, expiresAt }: Principal) {
  return { accountId, username, credentialId, ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }) };
}
