import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { type AuthenticationService, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { authenticateApiKey, authenticateSession, type Principal } from './authentication.ts';

export function authenticationRpc(ctx: IdentityContext): ServiceImpl<typeof AuthenticationService> {
  return {
    async authenticate({ credential, clientIp }) {
      if (credential.case === 'apiKey') {
        const { principal, epoch } = await authenticateApiKey(ctx, credential.value, clientIp);
        const { scopes, allApplications, applicationIds } = principal;
        const message = { ...toMessage(principal), kind: PrincipalKind.API_KEY, scopes, allApplications, applicationIds };
        return { principal: message, epochKey: epoch.key, epoch: epoch.value };
      }
      if (credential.case === undefined) throw errors.session_invalid();
      const { principal, epoch } = await authenticateSession(ctx, credential.value);
      const { csrfToken } = principal;
      const message = { ...toMessage(principal), kind: PrincipalKind.SESSION, allApplications: true, csrfToken };
      return { principal: message, epochKey: epoch.key, epoch: epoch.value };
    },
  };
}

function toMessage({ accountId, username, credentialId, expiresAt }: Principal) {
  return { accountId, username, credentialId, ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }) };
}
