import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { type AuthenticationService, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import type { IdentityContext } from '../context.ts';
import { errors } from '../errors.ts';
import { authenticateApiKey, authenticateSession } from './authentication.ts';

export function authenticationRpc(ctx: IdentityContext): ServiceImpl<typeof AuthenticationService> {
  return {
    async authenticate({ credential, clientIp }) {
      if (credential.case === undefined) throw errors.session_invalid();
      const { principal, epoch } = await (credential.case === 'apiKey'
        ? authenticateApiKey(ctx, credential.value, clientIp)
        : authenticateSession(ctx, credential.value));
      const kind = credential.case === 'apiKey' ? PrincipalKind.API_KEY : PrincipalKind.SESSION;
      const expiresAt = principal.expiresAt ? timestampFromDate(principal.expiresAt) : undefined;
      return { principal: { ...principal, kind, expiresAt }, epochKey: epoch.key, epoch: epoch.value };
    },
  };
}
