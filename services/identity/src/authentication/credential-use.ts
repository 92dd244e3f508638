import { isIP } from 'node:net';
import type { IdentityContext } from '../context.ts';
import { type StoredApiKey, type StoredSession, updateApiKeyUse, updateSessionUse } from './authentication.store.ts';

/** A use is written when the one before is this old (authentication.proto, `Authenticate`), or came from elsewhere. */
const USE_INTERVAL_MS = 60_000;

/** Writes when and from where a key was used. A failure is logged and no more: the key is valid. */
export async function recordApiKeyUse(ctx: IdentityContext, key: StoredApiKey, clientIp: string, at: Date): Promise<void> {
  const ip = parseIp(clientIp);
  const recentAfter = new Date(at.getTime() - USE_INTERVAL_MS);
  const recent = key.last_used_at !== null && key.last_used_at > recentAfter;
  if (recent && (ip === null || ip === key.last_used_ip)) return;
  await orLog(ctx, updateApiKeyUse(ctx.pool, { id: key.id, at, recentAfter }, ip));
}

/** Writes when a session was used. A failure is logged and no more. */
export async function recordSessionUse(ctx: IdentityContext, session: StoredSession, at: Date): Promise<void> {
  const recentAfter = new Date(at.getTime() - USE_INTERVAL_MS);
  if (session.last_seen_at > recentAfter) return;
  await orLog(ctx, updateSessionUse(ctx.pool, { id: session.id, at, recentAfter }));
}

async function orLog(ctx: IdentityContext, write: Promise<void>): Promise<void> {
  try {
    await write;
  } catch (err) {
    ctx.logger.warn({ err }, 'use of a credential not recorded');
  }
}

/** An address without its zone, which means something on the client's own host only, or null for what is no address. */
function parseIp(text: string): string | null {
  return isIP(text) === 0 ? null : text.replace(/%.*/s, '');
}
