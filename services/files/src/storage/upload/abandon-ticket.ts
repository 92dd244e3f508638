import type { FilesContext } from '../../context.ts';
import { hashTicket } from './begin-upload.ts';
import { deleteUnclaimed } from './upload-intent.store.ts';

/** Gives a ticket back that was not used, so that the account may upload again at once. Any other changes nothing. */
export async function abandonTicket(ctx: FilesContext, ticket: string): Promise<void> {
  await deleteUnclaimed(ctx.db, hashTicket(ticket));
}
