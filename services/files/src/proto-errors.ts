import { createErrors } from '@latchkey/kit/errors/error-catalogue';
import { type AvatarError, AvatarErrorSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { type FileError, FileErrorSchema } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { type UploadError, UploadErrorSchema } from '@latchkey/proto/latchkey/files/v1/upload_pb';

export const errors = createErrors<typeof AvatarError & typeof FileError & typeof UploadError>(
  ...[AvatarErrorSchema, FileErrorSchema, UploadErrorSchema],
);
