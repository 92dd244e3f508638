import { createErrors } from '@latchkey/kit/errors/read-proto-errors';
import { type ApplicationError, ApplicationErrorSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type ReleaseError, ReleaseErrorSchema } from '@latchkey/proto/latchkey/apps/v1/release_pb';

/** The errors of the apps service: its `.proto` files define them. */
export const errors = createErrors<typeof ApplicationError & typeof ReleaseError>(ApplicationErrorSchema, ReleaseErrorSchema);
