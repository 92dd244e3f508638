import { z } from 'zod';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { checkOwned, withApplication } from './application-access.ts';
import { applicationQuery, EXAMPLE_IDS, fileName, idOf } from './schemas.ts';

const fileId = idOf('file', 'Id of the file, from `getFilesTable` or `uploadFile`.');

/** A name that is not used for anything may be any text. */
const body = z.discriminatedUnion('action', [
  z.strictObject({ action: z.literal('delete_file'), fileId, fileName: z.string().optional() }),
  z.strictObject({ action: z.literal('change_file_name'), fileId, fileName: fileName.optional() }),
]);

/** Deleting and renaming a file (specification 4.2). */
export function fileActionRoute(clients: Clients): Route {
  return defineRoute({
    method: 'POST',
    url: '/api/v1/panel/file-action',
    operationId: 'changeFile',
    access: 'files:delete',
    tag: 'Files',
    summary: 'Delete or rename a file',
    description: '`change_file_name` needs `fileName`. Both succeed or leave everything as it was.',
    query: applicationQuery,
    body,
    examples: {
      rename: { action: 'change_file_name', fileId: EXAMPLE_IDS.file, fileName: 'setup-2.0.exe' },
      delete: { action: 'delete_file', fileId: EXAMPLE_IDS.file },
    },
    failures: ['file_name_taken'],
    message: 'Action completed successfully.',
    handle: (request) =>
      withApplication(clients, request, request.query.applicationId, async (ref) => {
        const { body: change, call } = request;
        if (change.action === 'delete_file') {
          await clients.files.deleteFile({ ...ref, fileId: change.fileId }, call);
          return;
        }
        if (change.fileName === undefined) {
          await checkOwned(clients, ref, call);
          throw errors.file_name_missing();
        }
        await clients.files.renameFile({ ...ref, fileId: change.fileId, fileName: change.fileName }, call);
      }),
  });
}
