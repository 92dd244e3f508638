import { defineErrors } from '@latchkey/kit/errors';

/** The errors of the apps service (decisions 3 and 6). */
export const errors = defineErrors({
  application_not_found: { kind: 'not_found', message: 'Not found' },
  application_name_invalid: { kind: 'malformed', message: 'The name must have 6 to 32 characters', path: 'name' },
  applications_limit_exceeded: { kind: 'too_large', message: 'There are as many applications as there may be' },
  account_id_invalid: { kind: 'malformed', message: 'The account id must be a UUID' },
  page_token_invalid: { kind: 'malformed', message: 'The page token or page size is not valid' },
  license_levels_invalid: {
    kind: 'malformed',
    message: 'License levels must be at least one, each 1 to 16 characters, each once',
    path: 'levels',
  },
  runtime_key_type_invalid: { kind: 'malformed', message: 'The type must be a socket key or an HTTP key', path: 'type' },
  runtime_key_invalid: { kind: 'unauthenticated', code: 'api_key_invalid', message: 'The runtime key is not valid' },
  rotation_limit_reached: { kind: 'rate_limited', message: 'Too many key rotations' },
  setting_unknown: { kind: 'malformed', message: 'There is no such setting', path: 'field' },
  setting_value_invalid: { kind: 'invalid', message: 'The value does not fit the field', path: 'value' },
});
