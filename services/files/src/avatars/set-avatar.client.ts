import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { Avatar } from './avatar.store.ts';

/**
 * Sets or removes an account's avatar at the identity service; safe to repeat. Returns the id of
 * the account's avatar or removal: this one, or one that began later. Throws `account_not_found`,
 * `dependency_unavailable`.
 */
export function createSetAvatar(identityTransport: Transport) {
  const identity = createClient(AccountService, identityTransport);
  return async (avatar: Avatar): Promise<string> => {
    const { id, state, account_id: accountId, created_at: createdAt, actor, request_id: requestId } = avatar;
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
