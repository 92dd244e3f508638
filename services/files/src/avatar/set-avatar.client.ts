import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { fromConnectError } from '@latchkey/kit/errors';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { SetAvatar } from './avatar-context.ts';

const TIMEOUT_MS = 3_000;

/** Tells over the given transport, for 3 s at most. */
export function createSetAvatar(identityTransport: Transport): SetAvatar {
  const client = createClient(AccountService, identityTransport);
  return async ({ accountId, avatarId, uploadedAt }) => {
    try {
      const message = { accountId, avatarId, uploadedAt: timestampFromDate(uploadedAt) };
      return (await client.setAvatar(message, { timeoutMs: TIMEOUT_MS })).avatarId;
    } catch (err) {
      throw fromConnectError(err) ?? err;
    }
  };
}
