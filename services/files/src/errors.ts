import { defineErrors } from '@latchkey/kit/errors';

const MALFORMED = 'Request does not match the schema';

/** The errors of the files service (specification 4.2 and 7, decisions 3 and 7). */
export const errors = defineErrors({
  file_name_invalid: { kind: 'malformed', message: MALFORMED, path: 'fileName', rule: 'must follow the rules for file names' },
  upload_malformed: { kind: 'malformed', message: MALFORMED },
  page_invalid: { kind: 'malformed', message: MALFORMED, path: 'currentPage', rule: 'must be a page of the table' },
  lifetime_invalid: { kind: 'malformed', message: 'A download URL is good for 1 to 3,600 seconds', path: 'lifetimeSeconds' },
  application_not_found: { kind: 'not_found', message: 'Not found' },
  file_not_found: { kind: 'not_found', message: 'Not found' },
  file_name_taken: { kind: 'conflict', code: 'file_name_taken', message: 'The file name is taken' },
  file_empty: { kind: 'invalid', code: 'invalid_file', message: 'The file is empty' },
  checksum_mismatch: { kind: 'invalid', code: 'invalid_file', message: 'The file does not match its Content-Digest' },
  file_too_large: { kind: 'too_large', message: 'The file is too large' },
  allowance_exceeded: { kind: 'too_large', message: 'The storage allowance does not suffice' },
  file_count_exceeded: { kind: 'too_large', message: 'There are as many files as there may be' },
  upload_under_way: { kind: 'rate_limited', message: 'Another upload of the account is under way' },
  upload_timeout: { kind: 'timeout', code: 'upload_timeout', message: 'The upload took too long' },
  upload_ticket_invalid: { kind: 'invalid', message: 'The upload ticket is unknown, used or expired. Begin the upload again.' },
  upload_interrupted: { kind: 'unavailable', message: 'The upload was interrupted' },
  avatar_not_found: { kind: 'not_found', message: 'Not found' },
  avatar_too_large: { kind: 'too_large', message: 'The image is larger than an avatar may be' },
  avatars_under_way: { kind: 'rate_limited', message: 'Other avatars of the account are being uploaded' },
  avatars_of_network: { kind: 'rate_limited', message: 'Too many avatars are being uploaded from this address' },
  avatars_busy: { kind: 'unavailable', message: 'Too many avatars are being uploaded' },
  image_unsupported: { kind: 'invalid', code: 'invalid_file', message: 'The file is not a PNG, JPEG or WebP image' },
  image_animated: { kind: 'invalid', code: 'invalid_file', message: 'The image is animated' },
  image_too_many_pixels: { kind: 'invalid', code: 'invalid_file', message: 'The image has more pixels than an avatar may have' },
  image_side_too_long: { kind: 'invalid', code: 'invalid_file', message: 'The image is wider or higher than an avatar may be' },
  image_damaged: { kind: 'invalid', code: 'invalid_file', message: 'The image is damaged, or followed by something else' },
  image_undecodable: { kind: 'invalid', code: 'invalid_file', message: 'The image takes too much to decode' },
  download_not_found: { kind: 'not_found', message: 'Not found' },
  downloads_of_network: { kind: 'rate_limited', message: 'Too many downloads from this address. Try again when one has ended' },
  downloads_of_file: { kind: 'rate_limited', message: 'Too many downloads of this file. Try again when one has ended' },
  too_many_downloads: { kind: 'unavailable', message: 'Too many downloads are under way' },
});
