import { parseId } from '@latchkey/kit/validation/id';
import { lockAccount, lockAccountShared } from '../account/account.store.ts';
import { type OwnerProof, verifyOwner } from '../account/verify-owner.ts';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { deleteSessionsOf } from '../session/session.store.ts';
import { endEpochs } from '../session/session.ts';
import { deleteLinks, type LinkRow, selectLinksOf } from './oidc-link.store.ts';

/** A subject at an issuer that may sign in to an account. */
export interface OidcLink {
  readonly issuer: string;
  readonly subject: string;
  readonly createdAt: Date;
  /** The issuer's name in the settings; undefined where it is no longer configured. */
  readonly name: string | undefined;
}

export interface UnlinkRequest extends OwnerProof {
  readonly accountId: string;
  readonly sessionId: string;
  /** The issuer's identifier, or its name in the settings. */
  readonly issuer: string;
  /** Undefined: every subject there. */
  readonly subject?: string | undefined;
}

export async function listLinks(ctx: IdentityContext, accountText: string): Promise<OidcLink[]> {
  const accountId = parseId(accountText);
  const rows = accountId ? await selectLinksOf(ctx.db, accountId) : [];
  return rows.map(({ issuer, subject, created_at }) => ({ issuer, subject, createdAt: created_at, name: nameOf(ctx, issuer) }));
}

/**
 * Removes links of an account for its verified owner, ends its other sessions, which the links may
 * have opened, and cancels sign-ins under way.
 * @returns how many links were removed
 * @throws `oidc_link_not_found`, `oidc_link_needed`, and what {@link verifyOwner} throws
 */
export async function unlink(ctx: ActingContext, request: UnlinkRequest): Promise<number> {
  const accountId = parseId(request.accountId);
  if (!accountId) throw errors.oidc_link_not_found();
  // Before the proof, so that no code is used up in vain.
  await selectRemovable(ctx, ctx.db, accountId, request);
  await verifyOwner(ctx, accountId, request);
  const { removed, ended } = await ctx.db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const links = await selectRemovable(ctx, tx, accountId, request);
    await deleteLinks(tx, links);
    const sessions = await deleteSessionsOf(tx, accountId, parseId(request.sessionId));
    const changes = { issuer: links[0]?.issuer, subjects: links.map(({ subject }) => subject), endedSessions: sessions.length };
    await recordAccount(ctx, tx, accountId, 'account.oidc_unlinked', changes);
    return { removed: links.length, ended: sessions };
  });
  await endEpochs(ctx, ended);
  return removed;
}

/** The links that a request names. An account without a password keeps one. */
async function selectRemovable(
  ctx: IdentityContext,
  db: Db,
  accountId: string,
  { issuer, subject }: UnlinkRequest,
): Promise<LinkRow[]> {
  const all = await selectLinksOf(db, accountId);
  const removed = all.filter((link) => {
    const isOfIssuer = link.issuer === issuer || nameOf(ctx, link.issuer) === issuer;
    return isOfIssuer && (subject === undefined || link.subject === subject);
  });
  if (removed.length === 0) throw errors.oidc_link_not_found();
  const isLast = removed.length === all.length && (await lockAccountShared(db, accountId))?.password_hash === null;
  if (isLast) throw errors.oidc_link_needed();
  return removed;
}

function nameOf({ oidcIssuers }: IdentityContext, identifier: string): string | undefined {
  if (!URL.canParse(identifier)) return undefined;
  const { href } = new URL(identifier);
  return [...oidcIssuers].find(([, { url }]) => url.href === href)?.[0];
}
