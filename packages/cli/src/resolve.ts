import type { Application, Latchkey } from '@latchkey/client';
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
  if (isId(wanted)) return { id: wanted, name: wanted };
  const files: Named[] = [];
  for await (const { id, displayName } of client.files.iterate(applicationId)) files.push({ id, name: displayName });
  return findByNameOrId(files, wanted, 'file', `latchkey files list --app ${applicationId}`);
}
