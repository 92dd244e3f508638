import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER, formatActor, type Origin } from '@latchkey/audit/actor';
import { fromConnectError } from '@latchkey/kit/errors';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { SetAvatar } from './avatar-context.ts';

const TIMEOUT_MS = 3_000;

/** Tells over the given transport, for 3 s at most. */
export function createSetAvatar(identityTransport: Transport): SetAvatar {
  const client = createClient(AccountService, identityTransport);
  return async ({ accountId, avatarId, uploadedAt, origin }) => {
    try {
      const message = { accountId, avatarId, uploadedAt: timestampFromDate(uploadedAt) };
      return (await client.setAvatar(message, { headers: headersOf(origin), timeoutMs: TIMEOUT_MS })).avatarId;
    } catch (err) {
      throw fromConnectError(err) ?? err;
    }
  };
}

/** Who sent an avatar is who changes it, however much later and by whomever it is recorded. */
function headersOf(origin: Origin): Record<string, string> {
  const actor = formatActor(origin);
  return {
    ...(actor !== undefined && { [ACTOR_HEADER]: actor }),
    ...(origin.requestId !== undefined && { [REQUEST_ID_HEADER]: origin.requestId }),
  };
}
