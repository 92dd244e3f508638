import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { SetAvatar } from './record-avatar.ts';

export function createSetAvatar(identityTransport: Transport): SetAvatar {
  const identity = createClient(AccountService, identityTransport);
  return async ({ id, state, account_id: accountId, created_at: createdAt, actor, request_id: requestId }) => {
    // The audit log names who sent the image, however much later a worker records it.
    const headers = { ...(actor && { [ACTOR_HEADER]: actor }), ...(requestId && { [REQUEST_ID_HEADER]: requestId }) };
    const message = { accountId, avatarId: id, uploadedAt: timestampFromDate(createdAt), removed: state === 'removing' };
    try {
      return (await identity.setAvatar(message, { headers, timeoutMs: DEADLINES_MS.setAvatar })).avatarId;
    } catch (err) {
      throw fromConnectError(err) ?? err;
    }
  };
}
