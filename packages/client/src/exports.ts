/** Exports of both entries besides the client. */
export { ConnectionError, type ErrorCode, type ErrorDetail, LatchkeyError } from './errors.ts';
export type * from './events/events.ts';
export { listen } from './events/listen.ts';
export type { CallOptions, ChangeOptions, DaysOptions, LatchkeyOptions } from './options.ts';
export type { ListPageOptions, PullEventsOptions, RotateRuntimeKeyOptions } from './resources/applications.ts';
export type { AuditQuery } from './resources/audit-log.ts';
export type { ListFilesOptions } from './resources/files.ts';
export type { ExchangeOptions } from './resources/trusted-issuers.ts';
export type * from './types.ts';
export type { UploadProgress } from './upload/content.ts';
export type { UploadOptions } from './upload/upload.ts';
