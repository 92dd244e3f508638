import { createHash } from 'node:crypto';
import type { Release } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/**
 * True if a client is offered a release. A client stays in when the share grows. One without a name
 * is offered only complete roll-outs.
 */
export function isOffered({ id, rolloutPercent }: Release, client: string | undefined): boolean {
  if (rolloutPercent >= 100) return true;
  if (client === undefined || client === '') return false;
  return createHash('sha256').update(`${id} ${client}`).digest().readUInt32BE(0) % 100 < rolloutPercent;
}
