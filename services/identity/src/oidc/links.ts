import { toId } from '@latchkey/kit/validation/id';
import type { UnlinkOidcRequest } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { selectAccount } from '../account/account.store.ts';
import { runAsVerifiedOwner } from '../account/verify-owner.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { endSessionsOf } from '../session/session.ts';
import { deleteLinks, selectLinksOf } from './oidc-link.store.ts';

export async function listLinks(ctx: IdentityContext, accountText: string) {
  const rows = await selectLinksOf(ctx.db, toId(accountText));
  return rows.map((row) => ({ ...row, name: nameOf(ctx, row.issuer) }));
}

/**
 * Removes links of an account for its verified owner, ends its other sessions, which the links may
 * have opened, and cancels sign-ins under way.
 * @returns how many links were removed
 * @throws `oidc_link_not_found`, `oidc_link_needed`, and what {@link runAsVerifiedOwner} throws
 */
export async function unlink(ctx: ActingContext, request: UnlinkOidcRequest): Promise<number> {
  const accountId = toId(request.accountId);
  // Before the proof, which is then not needed.
  await selectRemovable(ctx, ctx.db, accountId, request);
  return runAsVerifiedOwner(ctx, request, async (tx) => {
    const links = await selectRemovable(ctx, tx, accountId, request);
    await deleteLinks(tx, links);
    const endedSessions = await endSessionsOf(ctx, tx, accountId, request.sessionId);
    const changes = { issuer: links[0]?.issuer, subjects: links.map(({ subject }) => subject), endedSessions };
    await recordAction(ctx, tx, { accountId }, 'account.oidc_unlinked', changes);
    return links.length;
  });
}

/** The links that a request names. An account without a password needs one. */
async function selectRemovable(ctx: IdentityContext, db: Db, accountId: string, { issuer, subject }: UnlinkOidcRequest) {
  const all = await selectLinksOf(db, accountId);
  const removed = all.filter((link) => {
    const isOfIssuer = link.issuer === issuer || nameOf(ctx, link.issuer) === issuer;
    return isOfIssuer && (subject === undefined || link.subject === subject);
  });
  if (removed.length === 0) throw errors.oidc_link_not_found();
  const isLast = removed.length === all.length;
  if (isLast && (await selectAccount(db, accountId))?.password_hash === null) throw errors.oidc_link_needed();
  return removed;
}

function nameOf({ oidcIssuers }: IdentityContext, identifier: string): string | undefined {
  const href = URL.parse(identifier)?.href;
  return [...oidcIssuers].find(([, { url }]) => url.href === href)?.[0];
}
