import { listLinks } from '../oidc/links.ts';
import type { Command } from './command.ts';
import { accountJson, countOf, printable, table } from './describe.ts';
import { findAccount } from './find-account.ts';

/** Who can sign in to an account by OpenID Connect. */
export const listLinksCommand: Command = {
  usage: 'ACCOUNT',
  summary: 'show the links of the account to OpenID Connect issuers',
  positionals: ['ACCOUNT'],
  options: {},
  async run({ ctx, positionals }) {
    const account = await findAccount(ctx, positionals[0] ?? '');
    const links = await listLinks(ctx, account.id);
    const cells = links.map(({ issuer, subject, createdAt }) => [createdAt.toISOString(), printable(issuer), printable(subject)]);
    return {
      text: `${table(['LINKED', 'ISSUER', 'SUBJECT'], cells)}\n${countOf(links.length, 'link')} of ${account.username} (${account.email}).`,
      json: { account: accountJson(account), links: links.map(({ name, ...link }) => ({ ...link, name: name ?? null })) },
    };
  },
};
