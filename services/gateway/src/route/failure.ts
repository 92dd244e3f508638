/** Codes that only some routes answer: with which status, and when (decisions 3). */
export const BY_CODE = {
  invalid_file: [400, 'The file is empty, or is not what it has to be.'],
  two_factor_required: [401, 'The password is right, and the `code` of the second factor is missing.'],
  email_not_verified: [403, 'The sign-in provider names no email address that it has verified.'],
  not_found: [404, 'There is nothing of that name.'],
  upload_timeout: [408, 'The upload took too long.'],
  file_name_taken: [409, 'The file name is taken.'],
  limit_exceeded: [
    413,
    'The file is too large, the storage allowance does not suffice, or there are as many files as there may be.',
  ],
} as const;

/** A failure that a route declares: a status with all its codes, or one code. */
export type Failure = 401 | 403 | 409 | keyof typeof BY_CODE;
