import { LatchkeyError } from '../errors.ts';
import type { Http } from '../http/http.ts';
import type { CallOptions } from '../options.ts';
import type { DownloadUrl, FilePage, FilesMetadata, StoredFile, UploadedFile } from '../types.ts';
import type { OpenContent } from '../upload/content.ts';
import { type UploadOptions, uploadFile } from '../upload/upload.ts';

export interface ListFilesOptions extends CallOptions {
  /** Page number, from 1. A page has 10 files. */
  readonly page?: number | undefined;
  /** Text that the name contains, without regard to case. */
  readonly search?: string | undefined;
}

interface DownloadUrlOptions extends CallOptions {
  readonly lifetimeSeconds?: number | undefined;
}

/** Private files of applications. */
export const createFiles = <Source>(http: Http, openContent: OpenContent<Source>) => ({
  /** A page of the files of an application, newest first. */
  list: (applicationId: string, options?: ListFilesOptions): Promise<FilePage> => listFiles(http, applicationId, options),

  /** All files of an application, newest first. Reads the pages as they are needed. */
  async *iterate(applicationId: string, options: Omit<ListFilesOptions, 'page'> = {}): AsyncGenerator<StoredFile, void> {
    for (let page = 1, totalPages = 1; page <= totalPages; page += 1) {
      const found = await listFiles(http, applicationId, { ...options, page });
      yield* found.files;
      totalPages = found.totalPages;
    }
  },

  /** The number of files of an application, and the time of its last upload. */
  metadata: (applicationId: string, options?: CallOptions): Promise<FilesMetadata> =>
    http.call('GET /api/v1/panel/get-files-metadata', { query: { applicationId } }, options),

  /** True if no file of the application has this name. */
  async isNameFree(applicationId: string, name: string, options?: CallOptions): Promise<boolean> {
    try {
      const input = { query: { applicationId }, body: { fileName: name } };
      await http.call('POST /api/v1/panel/check-file-name', input, options);
      return true;
    } catch (err) {
      if (err instanceof LatchkeyError && err.code === 'file_name_taken') return false;
      throw err;
    }
  },

  /**
   * Uploads a file, and checks that the service stored these bytes. Sources other than streams are
   * hashed first, so that the service stores no others. In Node.js, one of over 10 MiB is a
   * resumable upload: called again after a failure, also by another process, it continues.
   *
   * @throws LatchkeyError such as `file_name_taken`, or `limit_exceeded` for a file that is too
   *   large: before it is hashed, if the key may read limits
   */
  upload(applicationId: string, source: Source, options: UploadOptions = {}): Promise<UploadedFile> {
    return uploadFile(http, openContent, applicationId, source, options);
  },

  /**
   * A URL that serves the bytes of a file to anyone, for 300 seconds unless `lifetimeSeconds` is
   * set.
   */
  createDownloadUrl: (applicationId: string, fileId: string, options?: DownloadUrlOptions): Promise<DownloadUrl> =>
    createDownloadUrl(http, applicationId, fileId, options),

  /**
   * Opens a file, by a URL that it creates. The body of the response has the bytes.
   *
   * @param options `signal` also ends the body
   */
  async download(applicationId: string, fileId: string, options: CallOptions = {}): Promise<Response> {
    const { url } = await createDownloadUrl(http, applicationId, fileId, options);
    return http.open(url, options.signal);
  },

  /** Gives a file another name. */
  async rename(applicationId: string, fileId: string, name: string, options?: CallOptions): Promise<void> {
    const body = { action: 'change_file_name' as const, fileId, fileName: name };
    await http.call('POST /api/v1/panel/file-action', { query: { applicationId }, body }, options);
  },

  /** Deletes a file. */
  async delete(applicationId: string, fileId: string, options?: CallOptions): Promise<void> {
    const body = { action: 'delete_file' as const, fileId };
    await http.call('POST /api/v1/panel/file-action', { query: { applicationId }, body }, options);
  },
});

async function listFiles(
  http: Http,
  applicationId: string,
  { page = 1, search = '', ...options }: ListFilesOptions = {},
): Promise<FilePage> {
  const searchParams = search === '' ? undefined : JSON.stringify({ searchString: search, categories: ['Name'] });
  const input = { query: { applicationId, currentPage: page, searchParams } };
  const { envelope } = await http.send('GET /api/v1/panel/get-files-table', input, options);
  return { files: envelope.data, totalPages: envelope.totalPages };
}

function createDownloadUrl(
  http: Http,
  applicationId: string,
  fileId: string,
  { lifetimeSeconds, ...options }: DownloadUrlOptions = {},
): Promise<DownloadUrl> {
  const input = { query: { applicationId }, body: { fileId, lifetimeSeconds } };
  return http.call('POST /api/v1/panel/create-download-url', input, options);
}
