import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import type { Kysely } from 'kysely';
import { onTestFinished } from 'vitest';
import type { AppsDatabase } from '../db/schema.ts';

/** The database as the service has it, until the test ends. */
export function openDatabase(url: string): Kysely<AppsDatabase> {
  const database = createDatabase<AppsDatabase>({ url, schema: 'apps', logger: createLogger('apps', 'silent') });
  onTestFinished(() => database.close());
  return database.db;
}
