import { parseId } from '@latchkey/kit/id';
import { selectApiKey, selectApiKeyOfPublicId } from '../api-key/api-key.store.ts';
import { revokeApiKey } from '../api-key/api-key.ts';
import type { Command } from './command.ts';
import { accountJson, printable } from './describe.ts';
import { findAccount } from './find-account.ts';
import { keyJson } from './list-keys.ts';
import { Refused } from './outcome.ts';

/** Ends a management key for good. */
export const revokeKeyCommand: Command = {
  usage: 'ACCOUNT KEY',
  summary: 'revoke a management key, named by its public id or its id',
  positionals: ['ACCOUNT', 'KEY'],
  options: {},
  async run({ ctx, positionals }) {
    const [accountName = '', keyName = ''] = positionals;
    const account = await findAccount(ctx, accountName);
    const id = parseId(keyName);
    const found = await (id === undefined
      ? selectApiKeyOfPublicId(ctx.db, account.id, keyName)
      : selectApiKey(ctx.db, { accountId: account.id, id }));
    if (!found) throw new Refused('api_key_not_found', `${account.username} has no key ${JSON.stringify(keyName)}.`);
    const key = await revokeApiKey(ctx, { accountId: account.id, id: found.id });
    const what = `the key ${key.public_id} (${printable(key.name)}) of ${account.username} (${account.email})`;
    return {
      text: found.revoked_at ? `Nothing changed: ${what} was revoked at ${found.revoked_at.toISOString()}.` : `Revoked ${what}.`,
      json: { account: accountJson(account), key: keyJson(key), changed: !found.revoked_at },
    };
  },
};
