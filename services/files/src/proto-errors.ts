import { commonErrors } from '@latchkey/kit/errors/errors';
import { createErrors } from '@latchkey/kit/errors/read-proto-errors';
import { type AvatarError, AvatarErrorSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { type FileError, FileErrorSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { type UploadError, UploadErrorSchema } from '@latchkey/proto/latchkey/files/v1/upload_pb';

export const errors = createErrors<typeof AvatarError & typeof FileError & typeof UploadError>(
  ...[AvatarErrorSchema, FileErrorSchema, UploadErrorSchema],
);

/** Throws `dependency_unavailable` for the failure of a store or a queue, which the log line has. */
export function rejectUnavailable(cause: unknown): never {
  throw Object.assign(commonErrors.dependency_unavailable(), { cause });
}
