import { FILE_NAME, FILE_NAME_LENGTH_MAX, FILE_NAME_RULE, isFileName } from '@latchkey/contract/file-name';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { KEY_OVERLAP_SECONDS_MAX } from '@latchkey/contract/key-overlap';
import { describeLength, EMAIL_LENGTH_MAX, type Length, PASSWORD, SEARCH_PARAMS_LENGTH_MAX } from '@latchkey/contract/lengths';
import { FRESH_SESSION_MINUTES, USAGE_DAYS_MAX } from '@latchkey/contract/limits';
import { withDescending } from '@latchkey/contract/list-order';
import { formatCount, hasLength, isStorable } from '@latchkey/kit/validation/text';
import { z } from 'zod';

export function trimmedText(length: Length, description: string) {
  return lengthOf(z.string().trim(), length, description);
}

/** A name of this many code points after NFC, removal of invisible characters and trimming. */
export function nameText(length: Length, description: string) {
  return lengthOf(z.string().overwrite(withoutInvisible), length, description);
}

function lengthOf(text: z.ZodString, length: Length, description: string) {
  const { min, max } = length;
  return text
    .refine((value) => hasLength(value, min, max), `must be ${describeLength(length)}`)
    .meta({ description, minLength: min, maxLength: max });
}

const WITHOUT_NUL = { pattern: '^[^\\x00]*$' };

/** Text of up to this many code points, for values that may be older than today's rules. */
export function textUpTo(max: number) {
  return shortText(max).meta(WITHOUT_NUL);
}

function shortText(max: number) {
  return z
    .string()
    .refine((text) => hasLength(text, 0, max), {
      message: `must be at most ${formatCount(max)} characters without NUL`,
      abort: true,
    })
    .meta({ maxLength: max });
}

/** Text to search names for, in the form that {@link nameText} stores them in. */
export const nameSearch = (example: string) =>
  textUpTo(SEARCH_PARAMS_LENGTH_MAX)
    .overwrite(withoutInvisible)
    .default('')
    .meta({ description: 'Text that names contain, without regard to case.', examples: [example] });

/** The email of an account. Its length is checked before its format. */
export function emailText(format: z.core.$ZodCheck<string> = z.email()) {
  return shortText(EMAIL_LENGTH_MAX).check(format);
}

export const anyText = z.string().refine(isStorable, 'must not have NUL').meta(WITHOUT_NUL);

export const nonEmptyText = (max: number) => textWithin({ min: 1, max });

function textWithin({ min, max }: Length) {
  return z
    .string()
    .refine((text) => hasLength(text, min, max), `must be ${describeLength({ min, max })} without NUL`)
    .meta({ minLength: min, maxLength: max, ...WITHOUT_NUL });
}

export const newPassword = textWithin(PASSWORD).meta({ description: `${describeLength(PASSWORD)}.` });

/** A code of a second factor. The service rejects malformed ones. */
export const twoFactorCode = z.string();

export const ownerProof = {
  password: textUpTo(1_000)
    .exactOptional()
    .meta({
      description: `Password of the account. If it has none, the session must have been opened within the last ${FRESH_SESSION_MINUTES} minutes.`,
    }),
  code: twoFactorCode
    .exactOptional()
    .meta({ description: 'Code of the second factor, or a recovery code; ignored where there is none.' }),
};

export const fileName = z
  .string()
  .overwrite(withoutInvisible)
  .refine(isFileName, FILE_NAME_RULE)
  .meta({
    maxLength: FILE_NAME_LENGTH_MAX,
    pattern: FILE_NAME.source,
    description: 'File name. Invisible characters, and white space around it, are removed before it is checked.',
    examples: ['setup-1.2.exe'],
  });

/** An id. Text other than a UUID is accepted, and gets 404. */
export const idText = z.string().meta({ format: 'uuid' });

/** Ids of the examples, which exist nowhere. */
export const EXAMPLE_IDS = {
  account: '019a9e3f-5c21-7d40-8b6e-1f7a9c3d5e02',
  application: '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15',
  file: '019a9e43-7f02-7b9c-a1e8-4d6c0b2f5e83',
  apiKey: '019a9e45-1d4e-7280-9c37-8b5f6e0a1d94',
  release: '019a9e47-4b1a-7c63-9d2f-8e5f0a6c3b71',
  trustedIssuer: '019a9e48-6a2d-7b15-8e94-0c7d3f1b5a86',
  session: '019a9e46-2c60-7f15-b8d4-6a0c9e3f7b12',
} as const;

/** An id whose description says where clients get it. */
export function idOf(kind: keyof typeof EXAMPLE_IDS, description: string) {
  return idText.meta({ format: 'uuid', description, examples: [EXAMPLE_IDS[kind]] });
}

export const checksum = z.string().meta({
  description: 'SHA-256 of the content, in lower-case hex.',
  examples: ['52117ed8647efd5dd166076ede5411d1ec4683f2003ac2e5971b5f0e12434616'],
});

export const applicationId = idOf('application', 'Id of the application, from `listApplications`.');

export const applicationQuery = z.object({ applicationId });

export const timestamp = z.string().meta({ format: 'date-time', examples: ['2026-05-12T09:00:00.000Z'] });

export const flag = z
  .string()
  .refine((text) => text === 'true' || text === 'false', 'must be true or false')
  .transform((text) => text === 'true')
  .meta({ type: 'boolean' });

/** An integer of a body, with one rule for all that is wrong. */
export function wholeNumber({ min, max }: { readonly min: number; readonly max: number }) {
  const rule = `must be a whole number from ${min} to ${formatCount(max)}`;
  return z.int({ error: rule, abort: true }).min(min, rule).max(max, rule);
}

export const overlapSeconds = wholeNumber({ min: 0, max: KEY_OVERLAP_SECONDS_MAX })
  .optional()
  .meta({ description: 'Time for which both keys are valid.' });

export const issuerName = nonEmptyText(64).meta({
  description: 'Name of the issuer in the settings of the service (`OIDC_ISSUERS`).',
  examples: ['acme'],
});

/** Some of the properties of a resource, to change it. */
export const changeOf = <F extends z.core.$ZodLooseShape>(fields: F) =>
  z
    .strictObject(fields)
    .partial()
    .refine((body) => Object.keys(body).length > 0, 'must have at least one property')
    .meta({ minProperties: 1 });

/** Largest page of the protocol. Every list has ended before. */
const PAGE_MAX = 2 ** 31 - 1;
const PAGE_RULE = 'must be a whole number from 1';

export const pageNumber = z
  .string()
  .regex(/^0*[1-9][0-9]*$/, PAGE_RULE)
  .transform((text) => Math.min(Number(text), PAGE_MAX))
  .meta({
    type: 'integer',
    minimum: 1,
    description: 'Page number, 1 by default. A page after the last one is empty.',
    examples: [1],
  });

/**
 * Query of a numbered page of things, which names search and order.
 *
 * @param orders the value of `order` for each name to sort by
 */
export function pageQuery<O>(orders: Readonly<Record<string, O>>, things: string, search: string, sort: string) {
  const sorts = z.enum(withDescending(Object.keys(orders))).default('name');
  const description = `\`-\` for descending. ${things} that are equal follow by creation.`;
  return z
    .object({ page: pageNumber.optional(), search: nameSearch(search), sort: sorts.meta({ description, examples: [sort] }) })
    .transform(({ page = 1, search, sort }) => {
      const order = orders[sort.replace('-', '')] as O;
      return { search, order, descending: sort.startsWith('-'), page };
    });
}

/** An integer of a query, of up to three digits without leading zeros. */
export function queryNumber(min: number, max: number, fallback: number, description: string, example: number) {
  const rule = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^(0|[1-9]\d{0,2})$/, rule)
    .transform(Number)
    .refine((number) => number >= min && number <= max, rule)
    .default(fallback)
    .meta({ type: 'integer', minimum: min, maximum: max, description, examples: [example] });
}

export const dayCount = queryNumber(1, USAGE_DAYS_MAX, USAGE_DAYS_MAX, 'Days to show, up to today (UTC).', 30);

export const date = z.iso.date().meta({ description: 'Day (UTC).', examples: ['2026-05-12'] });

const ENTITY_TAGS = /^(?:\*|(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*)$/;
const IF_MATCH_LENGTH_MAX = 1_024;

/** Headers of a change that may expect a state: its entity tags (RFC 9110, 13.1.1). */
export const ifMatchHeaders = z.object({
  'if-match': z
    .string()
    .refine((text) => text.length <= IF_MATCH_LENGTH_MAX && ENTITY_TAGS.test(text), 'must be entity tags or *')
    .transform((text) => text.match(/\*|(?:W\/)?"[^"]*"/g) ?? [])
    .optional()
    .meta({
      pattern: ENTITY_TAGS.source,
      description: '`ETag` of what was read. If it has another one meanwhile, nothing is changed (412).',
      examples: ['*'],
    }),
});

export const ETAG_HEADER = { ETag: 'Changes with the data. Send it as `If-Match` with a change.' };
