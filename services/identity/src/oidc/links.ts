import { parseId } from '@latchkey/kit/id';
import type { Kysely } from 'kysely';
import { lockAccount, selectPasswordHashShared } from '../account/account.store.ts';
import { type ActingContext, recordAccount } from '../audit/audit.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { deleteSessionsOf } from '../session/session.store.ts';
import { endEpochs } from '../session/session.ts';
import { deleteLinks, selectLinksOf } from './oidc-link.store.ts';
import { type OwnerProof, proveOwner } from './owner-proof.ts';

/** A way to sign in to an account. */
export interface OidcLink {
  /** The issuer's identifier. */
  readonly issuer: string;
  readonly subject: string;
  readonly createdAt: Date;
  /** Of the issuer in the settings; undefined where it is not there any more. */
  readonly name: string | undefined;
}

/** Whom to remove. */
export interface Unlinking {
  /** The issuer's identifier, or its name in the settings. */
  readonly issuer: string;
  /** Undefined means everybody there. */
  readonly subject: string | undefined;
}

/** What came of it. */
export interface Unlinked {
  /** Links that were removed. */
  readonly removed: number;
  readonly endedSessions: number;
}

/** The links of an account, the oldest first. */
export async function listLinks(ctx: IdentityContext, accountText: string): Promise<OidcLink[]> {
  const accountId = parseId(accountText);
  if (!accountId) return [];
  const rows = await selectLinksOf(ctx.db, accountId);
  return rows.map(({ issuer, subject, created_at }) => ({ issuer, subject, createdAt: created_at, name: nameOf(ctx, issuer) }));
}

/**
 * Removes links of an account for its owner, who shows what linking takes: whoever has no more than a session can't shut the owner out of the ways
 * in that they have.
 *
 * @throws `oidc_link_not_found`, `oidc_link_needed`, and what {@link proveOwner} throws
 */
export async function unlinkAsOwner(
  ctx: ActingContext,
  accountText: string,
  which: Unlinking,
  proof: OwnerProof,
): Promise<Unlinked> {
  const accountId = parseId(accountText);
  if (!accountId) throw errors.oidc_link_not_found();
  // Before the proof, so that no code is used up in vain.
  await selectRemovable(ctx, ctx.db, accountId, which, { mayBeLast: false });
  await proveOwner(ctx, accountId, proof);
  return unlink(ctx, accountId, which, { mayBeLast: false, keptSessionId: parseId(proof.sessionId) });
}

/**
 * Removes links of an account, and ends its sessions, which may have been opened by them; a sign-in by one that waits for a code comes to nothing.
 *
 * @param mayBeLast whether an account may be left with no way to sign in, as only operators can give it another
 * @param keptSessionId the session that asks and goes on
 * @throws `oidc_link_not_found`, `oidc_link_needed`
 */
export async function unlink(
  ctx: ActingContext,
  accountId: string,
  which: Unlinking,
  { mayBeLast, keptSessionId }: { readonly mayBeLast: boolean; readonly keptSessionId?: string | undefined },
): Promise<Unlinked> {
  const { removed, ended } = await ctx.db.transaction().execute(async (tx) => {
    if (!(await lockAccount(tx, accountId))) throw errors.oidc_link_not_found();
    const links = await selectRemovable(ctx, tx, accountId, which, { mayBeLast });
    await deleteLinks(tx, links);
    const sessions = await deleteSessionsOf(tx, accountId, keptSessionId);
    const changes = { issuer: links[0]?.issuer, subjects: links.map(({ subject }) => subject), endedSessions: sessions.length };
    await recordAccount(ctx, tx, accountId, 'account.oidc_unlinked', changes);
    return { removed: links.length, ended: sessions };
  });
  await endEpochs(ctx, ended);
  return { removed, endedSessions: ended.length };
}

async function selectRemovable(
  ctx: IdentityContext,
  db: Kysely<IdentityDatabase>,
  accountId: string,
  { issuer, subject }: Unlinking,
  { mayBeLast }: { readonly mayBeLast: boolean },
) {
  const all = await selectLinksOf(db, accountId);
  const removed = all.filter((link) => {
    const isThere = link.issuer === issuer || nameOf(ctx, link.issuer) === issuer;
    return isThere && (subject === undefined || link.subject === subject);
  });
  if (removed.length === 0) throw errors.oidc_link_not_found();
  const isLast = removed.length === all.length && (await selectPasswordHashShared(db, accountId)) === null;
  if (isLast && !mayBeLast) throw errors.oidc_link_needed();
  return removed;
}

function nameOf({ oidcIssuers }: IdentityContext, identifier: string): string | undefined {
  if (!URL.canParse(identifier)) return undefined;
  const { href } = new URL(identifier);
  return [...oidcIssuers].find(([, { url }]) => url.href === href)?.[0];
}
