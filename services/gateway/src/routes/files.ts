import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { File } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { z } from 'zod';
import type { Clients } from '../clients.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { withApplication } from './application-access.ts';
import { fileActionRoute } from './file-action.ts';
import { filesTableQuery } from './files-table.ts';
import { applicationQuery, checksum, fileName, idOf, timestamp } from './schemas.ts';

const TAG = 'Files';

const PAGE_SIZE = 10;

const fileRow = z
  .object({
    id: idOf('file', 'File id.'),
    displayName: fileName,
    byteSize: z.int().meta({ examples: [1_048_576] }),
    contentType: z.string().meta({ examples: ['application/octet-stream'] }),
    presignedUrlsCount: z.int(),
    lastPresignedUrlCreatedAt: timestamp.nullable(),
    createdAt: timestamp,
    user: z.object({ username: z.string().meta({ examples: ['ada'] }) }).meta({ description: 'Who uploaded it.' }),
    checksum,
  })
  .meta({ id: 'File' });

/** What is done with the files of an application, uploads aside (specification 4.2). */
export function fileRoutes(clients: Clients): Route[] {
  return [checkFileNameRoute(clients), metadataRoute(clients), tableRoute(clients), fileActionRoute(clients)];
}

function checkFileNameRoute(clients: Clients): Route {
  return defineRoute({
    method: 'POST',
    url: '/api/v1/panel/check-file-name',
    operationId: 'checkFileName',
    access: 'files:upload',
    tag: TAG,
    summary: 'Ask whether a file name is free',
    query: applicationQuery,
    body: z.strictObject({ fileName }),
    examples: { name: { fileName: 'setup-1.3.exe' } },
    failures: ['file_name_taken'],
    message: 'File name available',
    handle: (request) =>
      withApplication(clients, request, request.query.applicationId, async (ref) => {
        await clients.files.checkFileName({ ...ref, fileName: request.body.fileName }, request.call);
      }),
  });
}

function metadataRoute(clients: Clients): Route {
  return defineRoute({
    method: 'GET',
    url: '/api/v1/panel/get-files-metadata',
    operationId: 'getFilesMetadata',
    access: 'files:read',
    tag: TAG,
    summary: 'Count the files of an application',
    query: applicationQuery,
    data: z.object({ totalFiles: z.int(), lastUploadedAt: timestamp.nullable() }).meta({ id: 'FilesMetadata' }),
    message: 'Successfully fetched metadata',
    handle: (request) =>
      withApplication(clients, request, request.query.applicationId, async (ref) => {
        const { totalFiles, lastUploadedAt } = await clients.files.getFilesMetadata(ref, request.call);
        return { totalFiles: Number(totalFiles), lastUploadedAt: lastUploadedAt ? toText(lastUploadedAt) : null };
      }),
  });
}

function tableRoute(clients: Clients): Route {
  return defineRoute({
    method: 'GET',
    url: '/api/v1/panel/get-files-table',
    operationId: 'getFilesTable',
    access: 'files:read',
    tag: TAG,
    summary: 'List the files of an application',
    description: `Newest first, ${PAGE_SIZE} a page.`,
    query: filesTableQuery,
    data: z.array(fileRow),
    beside: { totalPages: z.int().meta({ examples: [1] }) },
    message: 'Successfully fetched table',
    handle: (request) =>
      withApplication(clients, request, request.query.applicationId, async (ref) => {
        const { currentPage: page = 1n, searchParams: nameContains = '' } = request.query;
        const found = await clients.files.listFiles({ ...ref, pageSize: PAGE_SIZE, page, nameContains }, request.call);
        const { username } = request.principal;
        return {
          data: found.files.map((file) => toRow(file, username)),
          beside: { totalPages: Math.ceil(Number(found.totalFiles) / PAGE_SIZE) },
        };
      }),
  });
}

/** @param username of the account, which all its files were uploaded by */
function toRow(file: File, username: string): z.input<typeof fileRow> {
  const { lastPresignedUrlCreatedAt: last } = file;
  return {
    id: file.id,
    displayName: file.displayName,
    byteSize: Number(file.byteSize),
    contentType: file.contentType,
    presignedUrlsCount: Number(file.presignedUrlsCount),
    lastPresignedUrlCreatedAt: last ? toText(last) : null,
    createdAt: toText(file.createdAt as Timestamp),
    user: { username },
    checksum: Buffer.from(file.checksum).toString('hex'),
  };
}

const toText = (moment: Timestamp) => timestampDate(moment).toISOString();
