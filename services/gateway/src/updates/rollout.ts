import { createHash } from 'node:crypto';
import type { Release } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/**
 * True if a client is offered a release. It stays offered when the share grows. A
 * client that does not identify itself is offered only releases at 100 %.
 */
export function isOffered({ id, rolloutPercent }: Release, client: string | undefined): boolean {
  if (rolloutPercent >= 100) return true;
  if (client === undefined || client === '') return false;
  return createHash('sha256').update(`${id} ${client}`).digest().readUInt32BE(0) % 100 < rolloutPercent;
}
