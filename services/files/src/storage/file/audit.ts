import type { Origin } from '@latchkey/kit/audit/actor';
import { recordAudit } from '@latchkey/kit/audit/audit-entry';
import type { Changes } from '@latchkey/kit/audit/changes';
import type { Kysely } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';

/** What is done to a file. */
export interface FileEvent {
  readonly accountId: string;
  readonly applicationId: string;
  readonly fileId: string;
  /** By the name that the audit log has for it. */
  readonly action: 'file.uploaded' | 'file.renamed' | 'file.deleted';
  readonly changes: Changes;
}

/** Writes to the audit log what is done to files, in the transaction that does it. */
export async function recordFiles(tx: Kysely<FilesDatabase>, origin: Origin, ...events: readonly FileEvent[]): Promise<void> {
  await recordAudit(
    tx,
    origin,
    ...events.map(({ fileId, ...event }) => ({ ...event, subject: { kind: 'file' as const, id: fileId } })),
  );
}
