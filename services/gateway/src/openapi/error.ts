import { z } from 'zod';

/** Codes of the error envelope (specification 7, decisions 3), each with a message that clients may see. */
const MESSAGES = {
  VALIDATION_ERROR: 'Request does not match the schema',
  bad_request: 'The code is not valid',
  unauth: 'The session is not valid',
  two_factor_required: 'The code of the second factor is needed',
  api_key_invalid: 'The API key is not valid',
  api_key_expired: 'The API key has expired',
  api_key_revoked: 'The API key was revoked',
  insufficient_scope: 'The API key lacks the scope for this route',
  application_forbidden: 'The API key has no access to this application',
  session_required: 'This route needs a dashboard session',
  csrf_invalid: 'The CSRF token or the origin is not valid',
  sign_up_closed: 'Sign-up is closed',
  email_not_verified: 'The sign-in provider has not verified the email address',
  not_found: 'Not found',
  upload_timeout: 'The upload took too long',
  account_exists: 'The username or the email is taken',
  file_name_taken: 'The file name is taken',
  invalid_file: 'The file is empty',
  limit_exceeded: 'File limit reached',
  rate_limit_reached: 'Too many requests',
  INTERNAL_ERROR: 'Internal server error. Error id: 019a9e41-9c18-7e33-8a6d-0f9b2c5d8e71',
} as const;

export type ErrorCode = keyof typeof MESSAGES;

const DETAILS = { details: [{ path: 'body.name', message: 'must be 6 to 32 characters' }] };

const detail = z
  .object({
    path: z.string().meta({ description: 'The input; `request` if no single input is wrong.', examples: ['body.name'] }),
    message: z.string().meta({ description: 'The rule that it breaks.', examples: ['must be 6 to 32 characters'] }),
  })
  .meta({ id: 'ErrorDetail', description: 'An input that was rejected, and why.' });

/** The error envelope. */
export const error = z
  .object({
    success: z.literal(false),
    code: z.enum(Object.keys(MESSAGES) as [ErrorCode, ...ErrorCode[]]).meta({
      id: 'ErrorCode',
      description: 'Stable code of the error. Later releases may add codes.',
    }),
    message: z.string().meta({ description: 'The error in words, for people.', examples: [MESSAGES.VALIDATION_ERROR] }),
    details: z.array(detail).max(10).optional().meta({
      description: 'Which inputs broke which rule. Only with `VALIDATION_ERROR` and `bad_request`.',
    }),
  })
  .meta({ id: 'Error', description: 'The response to every request that fails.' });

/** An example of each error, by its code. */
export const ERROR_EXAMPLES = Object.fromEntries(
  Object.entries(MESSAGES).map(([code, message]) => {
    const details = code === 'VALIDATION_ERROR' || code === 'bad_request' ? DETAILS : {};
    return [code, { value: { success: false, code, message, ...details } }];
  }),
);
