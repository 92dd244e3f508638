import type { Application, Latchkey, StoredFile } from '@latchkey/client';
import { findByNameOrId, isId, type Named } from './find.ts';

/**
 * The application with this name or id.
 *
 * @param full an id is looked up, too, which needs a key with `applications:read`
 */
export async function resolveApplication(client: Latchkey, wanted: string, options: { full: true }): Promise<Application>;
export async function resolveApplication(client: Latchkey, wanted: string): Promise<Named>;
export async function resolveApplication(client: Latchkey, wanted: string, { full = false } = {}) {
  if (isId(wanted) && !full) return { id: wanted, name: wanted };
  return findByNameOrId(await client.applications.list(), wanted, 'application', 'latchkey apps list');
}

/** The file of the application with this name or id. */
export async function resolveFile(client: Latchkey, applicationId: string, wanted: string): Promise<StoredFile & Named> {
  const files: Array<StoredFile & Named> = [];
  for await (const file of client.files.iterate(applicationId)) files.push({ ...file, name: file.displayName });
  return findByNameOrId(files, wanted, 'file', `latchkey files list --app ${applicationId}`);
}
