import type { DownloadDescription } from '../object-store/object-store.ts';

/** Makes and reads the URLs of files that the store does not serve by itself (decisions 11). */
export interface DownloadUrls {
  /**
   * An absolute URL at this service, signed, good until a moment.
   *
   * @param expiresAt when it ceases to be good
   */
  create(fileId: string, expiresAt: Date): string;
  /** The file that the last part of such a URL's path names, or undefined where it is forged or past. */
  read(token: string, now: Date): string | undefined;
}

export type { DownloadDescription };
