import { ConfigError } from '@latchkey/kit/config';
import { DomainError } from '@latchkey/kit/errors';
import pg from 'pg';
import { Refused } from './outcome.ts';

/** SQLSTATEs of a table and of a column that is not there. */
const SCHEMA_IS_OLDER = new Set(['42P01', '42703']);

/** Why a command did nothing, without any secret: for scripts and for people. */
export function explainFailure(err: unknown): { readonly reason: string; readonly message: string } {
  if (err instanceof Refused) return { reason: err.reason, message: err.message };
  if (err instanceof DomainError) return { reason: err.reason, message: `${err.message}.` };
  if (err instanceof ConfigError)
    return { reason: 'settings_wrong', message: `Wrong settings:\n${err.message.replace(/^/gm, '  ')}` };
  if (err instanceof pg.DatabaseError && SCHEMA_IS_OLDER.has(err.code ?? '')) {
    const message =
      'The database lacks tables of the identity service, or has older ones. Start Latchkey once, or check the settings.';
    return { reason: 'schema_missing', message };
  }
  const { message, code } = err as NodeJS.ErrnoException;
  return { reason: 'failed', message: `It could not be done: ${(message || code || 'no answer').replace(/\.$/, '')}.` };
}
