/** What only some routes answer: with which status and code, and when (decisions 3). The code is what it is called where no other is said. */
export const FAILURES = {
  invalid_file: { status: 400, when: 'The file is empty, or is not what it has to be.' },
  sign_in_failed: { status: 401, code: 'unauth', when: 'The email or the password is wrong.' },
  two_factor_required: { status: 401, when: 'The password is right, and the `code` of the second factor is missing.' },
  oidc_failed: {
    status: 401,
    code: 'unauth',
    when: 'The issuer refused, its answer is not to be believed, or this browser did not begin the sign-in, took longer than 10 minutes, or has ended it.',
  },
  oidc_code_required: {
    status: 401,
    code: 'two_factor_required',
    when: 'The account has two-factor authentication on: `complete` takes the code.',
  },
  sign_up_closed: { status: 403, when: 'There is no account, and sign-up is closed.' },
  email_not_verified: { status: 403, when: 'The sign-in provider names no email address that it has verified.' },
  sent_from_elsewhere: {
    status: 403,
    code: 'csrf_invalid',
    when: 'A page of another site sent the browser here, or loads this within itself.',
  },
  application_forbidden: { status: 403, when: 'The key does not have access to all applications.' },
  too_many_keys: { status: 403, code: 'limit_exceeded', when: 'There are as many active keys as there may be.' },
  not_found: { status: 404, when: 'There is nothing of that name.' },
  issuer_not_found: { status: 404, code: 'not_found', when: 'No issuer is configured by that name.' },
  link_not_found: { status: 404, code: 'not_found', when: 'The account has no such link.' },
  upload_timeout: { status: 408, when: 'The upload took too long.' },
  file_name_taken: { status: 409, when: 'The file name is taken.' },
  account_exists: { status: 409, when: 'The username or the email is taken.' },
  oidc_account_exists: {
    status: 409,
    code: 'account_exists',
    when: 'An account has the email of a person who has none; or the browser is signed in to another account than theirs; or, linking, they have another.',
  },
  avatar_too_large: { status: 413, code: 'limit_exceeded', when: 'The image is larger than 3 MiB.' },
  too_many_applications: { status: 413, code: 'limit_exceeded', when: 'There are as many applications as there may be.' },
  limit_exceeded: {
    status: 413,
    when: 'The file is too large, the storage allowance does not suffice, or there are as many files as there may be.',
  },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly code?: string; readonly when: string }>>;

/** A failure that a route declares. */
export type Failure = keyof typeof FAILURES;
