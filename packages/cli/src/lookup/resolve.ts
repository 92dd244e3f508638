import { type Application, type Latchkey, LatchkeyError, type StoredFile } from '@latchkey/client';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { findByNameOrId, isId, type Named } from './find.ts';

/** The application with this name or id. Needs a key with `applications:read`. */
export async function findApplication(client: Latchkey, wanted: string): Promise<Application> {
  const applications = await client.applications.list().catch((err: unknown) => {
    if (!(err instanceof LatchkeyError) || err.code !== 'insufficient_scope') throw err;
    throw new CliError('forbidden', `The key may not list applications (applications:read). Use the id instead of "${wanted}".`);
  });
  return findByNameOrId(applications, wanted, 'application', 'latchkey apps list');
}

/** As `findApplication`; an id is not looked up, so that a key without the scope suffices. */
export async function resolveApplication(client: Latchkey, wanted: string): Promise<Named> {
  return isId(wanted) ? { id: wanted, name: wanted } : findApplication(client, wanted);
}

export async function openApplication(context: Context, wanted: string): Promise<Named & { readonly client: Latchkey }> {
  const client = await context.client();
  const { id, name } = await resolveApplication(client, wanted);
  return { client, id, name };
}

/** The file of the application with this name or id. An id is not looked up. */
export async function resolveFile(client: Latchkey, applicationId: string, wanted: string): Promise<Named> {
  return isId(wanted) ? { id: wanted, name: wanted } : findFile(client, applicationId, wanted);
}

export async function findFile(client: Latchkey, applicationId: string, wanted: string): Promise<StoredFile & Named> {
  const files: Array<StoredFile & Named> = [];
  for await (const file of client.files.iterate(applicationId)) files.push({ ...file, name: file.displayName });
  return findByNameOrId(files, wanted, 'file', `latchkey files list --app ${applicationId}`);
}
