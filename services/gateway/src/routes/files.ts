import { DOWNLOAD_URL_LIFETIME_S } from '@latchkey/contract/download-url';
import { SEARCH_PARAMS_LENGTH_MAX } from '@latchkey/contract/lengths';
import { FILES_PAGE_SIZE } from '@latchkey/contract/page-size';
import { formatCount, hasLength } from '@latchkey/kit/validation/text';
import { z } from 'zod';
import { errors } from '../errors.ts';
import { parseJsonBody } from '../http/json-body.ts';
import { list } from '../routing/list.ts';
import { checkOwned } from '../routing/resolve-application.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import {
  applicationQuery,
  checksum,
  EXAMPLE_IDS,
  fileName,
  idOf,
  pageNumber,
  timestamp,
  wholeNumber,
} from '../routing/schemas.ts';

const fileRow = component('File', {
  id: idOf('file', 'File id.'),
  displayName: fileName,
  byteSize: z.int().meta({ examples: [1_048_576] }),
  contentType: z.string().meta({ examples: ['application/octet-stream'] }),
  presignedUrlsCount: z.int(),
  lastPresignedUrlCreatedAt: timestamp.nullable(),
  createdAt: timestamp,
  user: z.object({ username: z.string().meta({ examples: ['ada'] }) }).meta({ description: 'Who uploaded it.' }),
  checksum,
});

const fileId = idOf('file', 'Id of the file, from `getFilesTable` or `uploadFile`.');

// Nothing reads this name: it may be any text.
const deleteBody = z.strictObject({ action: z.literal('delete_file'), fileId, fileName: z.string().optional() });
const renameBody = z.strictObject({ action: z.literal('change_file_name'), fileId, fileName });
const actionBody = z.discriminatedUnion('action', [deleteBody, renameBody.partial({ fileName: true })]);

const search = z.strictObject({ searchString: z.string(), categories: list(z.literal('Name'), 0, SEARCH_PARAMS_LENGTH_MAX) });
/** The shortest form of the JSON text, with any text but lone surrogates. */
const SEARCH_PATTERN = String.raw`^\{"searchString":"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*","categories":\[(?:"Name"(?:,"Name")*)?\]\}$`;
const SEARCH_RULE = `must be JSON of up to ${formatCount(SEARCH_PARAMS_LENGTH_MAX)} characters: {"searchString": string, "categories": ["Name"]}`;

/** JSON text, parsed like a body, to the text to search for; empty filters nothing. */
const searchParams = z
  .string()
  .refine((text) => hasLength(text, 0, SEARCH_PARAMS_LENGTH_MAX), SEARCH_RULE)
  .transform((text, ctx) => {
    const parsed = search.safeParse(parseOrUndefined(text));
    if (parsed.success) return parsed.data.categories.length === 0 ? '' : parsed.data.searchString;
    ctx.issues.push({ code: 'custom', message: SEARCH_RULE, input: text });
    return z.NEVER;
  });

function parseOrUndefined(text: string): unknown {
  try {
    return parseJsonBody(Buffer.from(text));
  } catch {
    return undefined;
  }
}

const LIFETIME = DOWNLOAD_URL_LIFETIME_S;

const downloadUrlBody = z.strictObject({
  fileId,
  lifetimeSeconds: wholeNumber(LIFETIME)
    .optional()
    .meta({ description: `How long the URL is valid, in seconds; ${LIFETIME.default} unless set.` }),
});

const tableQuery = applicationQuery.extend({
  currentPage: pageNumber.optional(),
  searchParams: searchParams.optional().meta({
    description:
      'JSON text `{"searchString": "…", "categories": ["Name"]}`. Without text or without a category it filters nothing.',
    examples: ['{"searchString":"setup","categories":["Name"]}'],
    maxLength: SEARCH_PARAMS_LENGTH_MAX,
    pattern: SEARCH_PATTERN,
  }),
});

export function fileRoutes({ clients }: RouteContext) {
  const { files } = clients;
  return {
    checkFileName: defineRoute('POST /api/v1/panel/check-file-name', 'files:upload', {
      application: 'query',
      summary: 'Check whether a file name is free',
      body: z.strictObject({ fileName }),
      examples: { name: { fileName: 'setup-1.3.exe' } },
      message: 'File name available',
      handle: ({ application, body }) => files.checkFileName({ ...application, fileName: body.fileName }),
    }),
    getFilesMetadata: defineRoute('GET /api/v1/panel/get-files-metadata', 'files:read', {
      application: 'query',
      summary: 'Count the files of an application',
      data: z.object({ totalFiles: z.int(), lastUploadedAt: timestamp.nullable() }).meta({ id: 'FilesMetadata' }),
      message: 'Successfully fetched metadata',
      handle: ({ application }) => files.getFilesMetadata(application),
    }),
    getFilesTable: defineRoute('GET /api/v1/panel/get-files-table', 'files:read', {
      application: 'query',
      summary: 'List the files of an application',
      description: `Newest first, ${FILES_PAGE_SIZE.default} a page.`,
      query: tableQuery,
      data: z.array(fileRow),
      pageSize: FILES_PAGE_SIZE.default,
      failures: ['listFiles'],
      message: 'Successfully fetched table',
      handle: async ({ application, principal: { username }, query }) => {
        const { currentPage = 1, searchParams: nameContains = '' } = query;
        const found = await files.listFiles({
          ...application,
          pageSize: FILES_PAGE_SIZE.default,
          page: BigInt(currentPage),
          nameContains,
        });
        // The account uploaded all its files.
        return { data: found.files.map((file) => ({ ...file, user: { username } })), total: found.totalFiles };
      },
    }),
    createDownloadUrl: defineRoute('POST /api/v1/panel/create-download-url', 'files:read', {
      application: 'query',
      summary: 'Create a download URL',
      description: [
        'The URL serves the bytes of one file, with ranges and without a credential: treat it as a secret.',
        'The file counts its URLs as `presignedUrlsCount`.',
      ].join(' '),
      body: downloadUrlBody,
      examples: { tenMinutes: { fileId: EXAMPLE_IDS.file, lifetimeSeconds: 600 } },
      data: component('DownloadUrl', {
        url: z.string().meta({ format: 'uri', description: 'Absolute URL, for GET and HEAD.' }),
        expiresAt: timestamp,
      }),
      message: 'Download URL created.',
      handle: ({ application, body: { fileId, lifetimeSeconds = LIFETIME.default } }) =>
        files.createDownloadUrl({ ...application, fileId, lifetimeSeconds }),
    }),
    changeFile: defineRoute('POST /api/v1/panel/file-action', 'files:delete', {
      application: 'query',
      summary: 'Delete or rename a file',
      description: '`change_file_name` needs `fileName`. Both actions succeed or change nothing.',
      body: actionBody,
      documentedBody: z.discriminatedUnion('action', [deleteBody, renameBody]),
      examples: {
        rename: { action: 'change_file_name', fileId: EXAMPLE_IDS.file, fileName: 'setup-2.0.exe' },
        delete: { action: 'delete_file', fileId: EXAMPLE_IDS.file },
      },
      failures: ['deleteFile', 'renameFile'],
      message: 'Action completed successfully.',
      handle: async ({ application, body: { action, fileId, fileName: name } }) => {
        if (action === 'delete_file') return files.deleteFile({ ...application, fileId });
        if (name === undefined) {
          await checkOwned(clients, application);
          throw errors.file_name_missing();
        }
        return files.renameFile({ ...application, fileId, fileName: name });
      },
    }),
  };
}
