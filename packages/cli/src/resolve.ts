import type { Application, Latchkey, StoredFile } from '@latchkey/client';
import { findByNameOrId, isId, type Named } from './find.ts';

/** The application with this name or id. Needs a key with `applications:read`. */
export async function findApplication(client: Latchkey, wanted: string): Promise<Application> {
  return findByNameOrId(await client.applications.list(), wanted, 'application', 'latchkey apps list');
}

/** As `findApplication`; an id is not looked up, so that a key without the scope suffices. */
export async function resolveApplication(client: Latchkey, wanted: string): Promise<Named> {
  return isId(wanted) ? { id: wanted, name: wanted } : findApplication(client, wanted);
}

/** The file of the application with this name or id. An id is not looked up. */
export async function resolveFile(client: Latchkey, applicationId: string, wanted: string): Promise<Named> {
  return isId(wanted) ? { id: wanted, name: wanted } : findFile(client, applicationId, wanted);
}

/** The file of the application with this name or id. */
export async function findFile(client: Latchkey, applicationId: string, wanted: string): Promise<StoredFile & Named> {
  const files: Array<StoredFile & Named> = [];
  for await (const file of client.files.iterate(applicationId)) files.push({ ...file, name: file.displayName });
  return findByNameOrId(files, wanted, 'file', `latchkey files list --app ${applicationId}`);
}
