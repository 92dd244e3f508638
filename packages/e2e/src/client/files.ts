import type { Answer, Api } from './api.ts';

export const UPLOAD = '/api/v1/panel/upload-file';
export const TABLE = '/api/v1/panel/get-files-table';
export const METADATA = '/api/v1/panel/get-files-metadata';
export const CHECK_NAME = '/api/v1/panel/check-file-name';
export const ACTION = '/api/v1/panel/file-action';

export const MIB = 1024 * 1024;

/** A row of the files table (specification 2.4). */
export interface FileRow {
  readonly id: string;
  readonly displayName: string;
  readonly byteSize: number;
  readonly contentType: string;
  readonly presignedUrlsCount: number;
  readonly lastPresignedUrlCreatedAt: string | null;
  readonly createdAt: string;
  readonly user: { readonly username: string };
  readonly checksum: string;
}

/** Uploads a file whose bytes are there already. */
export function upload(
  api: Api,
  applicationId: string,
  fileName: string,
  content: string | Uint8Array = fileName,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return api.send('POST', UPLOAD, {
    query: { applicationId, fileName },
    body: typeof content === 'string' ? Buffer.from(content) : content,
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });
}

/** Uploads a file in place of the one that has its name. */
export function replaceFile(
  api: Api,
  applicationId: string,
  fileName: string,
  content: string,
  replace = 'true',
): Promise<Answer> {
  return api.send('POST', UPLOAD, {
    query: { applicationId, fileName, replace },
    body: Buffer.from(content),
    headers: { 'content-type': 'application/octet-stream' },
  });
}

/** All files of an application, newest first. */
export async function listFiles(api: Api, applicationId: string): Promise<FileRow[]> {
  const files: FileRow[] = [];
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const { data, totalPages = 0, text } = await api.get(TABLE, { applicationId, currentPage: String(page) });
    if (data === undefined) throw new Error(`The files were not listed: ${text}`);
    files.push(...data);
    pages = totalPages;
  }
  return files;
}

export async function findFileId(api: Api, applicationId: string, fileName: string): Promise<string> {
  const file = (await listFiles(api, applicationId)).find(({ displayName }) => displayName === fileName);
  if (!file) throw new Error(`There is no file ${fileName}`);
  return file.id;
}

export function deleteFile(api: Api, applicationId: string, fileId: string): Promise<Answer> {
  return api.post(ACTION, { action: 'delete_file', fileId }, { applicationId });
}

export function renameFile(api: Api, applicationId: string, fileId: string, fileName: string): Promise<Answer> {
  return api.post(ACTION, { action: 'change_file_name', fileId, fileName }, { applicationId });
}

/** Status and code of an answer, in one text. */
export const outcome = ({ status, code }: Pick<Answer, 'status' | 'code'>): string => `${status} ${code}`.trim();
