import { createErrors } from '@latchkey/kit/errors/error-catalogue';
import { type ApplicationError, ApplicationErrorSchema } from '@latchkey/proto/latchkey/apps/v1/application_pb';

/** The errors of the apps service: `application.proto` defines them. */
export const errors = createErrors<typeof ApplicationError>(ApplicationErrorSchema);
