import { type ApiKey, listApiKeys } from '../api-key/api-key.ts';
import type { IdentityContext } from '../context.ts';
import type { Command } from './command.ts';
import { accountJson, countOf, printable, table } from './describe.ts';
import { findAccount } from './find-account.ts';

/** The management keys of an account, ended ones too. */
export const listKeysCommand: Command = {
  usage: 'ACCOUNT',
  summary: 'show the management keys of the account',
  positionals: ['ACCOUNT'],
  options: {},
  async run({ ctx, positionals }) {
    const account = await findAccount(ctx, positionals[0] ?? '');
    const keys = await listAllKeys(ctx, account.id);
    const cells = keys.map((key) => {
      const applications = key.all_applications ? 'all' : String(key.application_ids.length);
      const lastUsed = key.last_used_at ? `${key.last_used_at.toISOString()} ${key.last_used_ip ?? ''}`.trim() : 'never';
      return [key.public_id, stateOf(ctx, key), applications, lastUsed, key.scopes.join(','), printable(key.name)];
    });
    const headings = ['PUBLIC ID', 'STATE', 'APPLICATIONS', 'LAST USED', 'SCOPES', 'NAME'];
    return {
      text: `${table(headings, cells)}\n${countOf(keys.length, 'key')} of ${account.username} (${account.email}).`,
      json: { account: accountJson(account), keys: keys.map(keyJson) },
    };
  },
};

/** An account keeps its revoked keys too, so that only their pages are bounded. */
async function listAllKeys(ctx: IdentityContext, accountId: string): Promise<ApiKey[]> {
  const keys: ApiKey[] = [];
  let pageToken = '';
  do {
    const page = await listApiKeys(ctx, accountId, pageToken);
    keys.push(...page.apiKeys);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return keys;
}

function stateOf({ clock }: IdentityContext, { revoked_at, expires_at }: ApiKey): string {
  if (revoked_at) return 'revoked';
  return expires_at && expires_at <= clock() ? 'expired' : 'active';
}

/** A key for scripts: the record of the interface. Its text is not stored anywhere. */
export function keyJson(key: ApiKey): object {
  return {
    id: key.id,
    name: key.name,
    publicId: key.public_id,
    keyLast4: key.key_last4,
    scopes: key.scopes,
    allApplications: key.all_applications,
    applicationIds: key.application_ids,
    expiresAt: key.expires_at,
    revokedAt: key.revoked_at,
    lastUsedAt: key.last_used_at,
    lastUsedIp: key.last_used_ip,
    createdAt: key.created_at,
    updatedAt: key.updated_at,
  };
}
