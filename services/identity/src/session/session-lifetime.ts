const DAY_MS = 86_400_000;

/** A session unused for so long has ended (decisions 4). */
const IDLE_LIFETIME_MS = 7 * DAY_MS;
/** A session this old has ended however much it is used (decisions 4). */
const ABSOLUTE_LIFETIME_MS = 30 * DAY_MS;

/** The end of a session opened at that time. */
export function sessionEnd(openedAt: Date): Date {
  return new Date(openedAt.getTime() + ABSOLUTE_LIFETIME_MS);
}

/** Sessions last seen at this time or before are idle. */
export function idleSince(now: Date): Date {
  return new Date(now.getTime() - IDLE_LIFETIME_MS);
}

/** Whether a session may still be used. */
export function isSessionAlive(session: { readonly lastSeenAt: Date; readonly expiresAt: Date }, now: Date): boolean {
  return session.expiresAt > now && session.lastSeenAt > idleSince(now);
}
