import { hasLength } from '@latchkey/kit/text';
import { z } from 'zod';
import { parseJsonBody } from '../http/json-body.ts';
import { applicationQuery } from './schemas.ts';

const SEARCH_PARAMS_LENGTH_MAX = 1_024;

/** Largest number that the protocol can carry; no table has so many pages. */
const PAGE_MAX = 2n ** 63n - 1n;

const WHOLE_NUMBER = /^[0-9]+$/;

const search = z.strictObject({ searchString: z.string(), categories: z.array(z.literal('Name')) });

const PAGE_RULE = 'must be a whole number from 1';

/** A page, from 1. However many digits it has, it is a number, and what the protocol can't carry is past the end of any table. */
const currentPage = z
  .string()
  .regex(WHOLE_NUMBER, PAGE_RULE)
  .transform(BigInt)
  .refine((page) => page >= 1n, PAGE_RULE)
  .transform((page) => (page > PAGE_MAX ? PAGE_MAX : page));

const SEARCH_RULE = 'must be JSON of up to 1,024 characters: {"searchString": string, "categories": ["Name"]}';

/** JSON text, read as strictly as a body (decisions 7); what is left of it is the text to search for, which is empty for none. */
const searchParams = z
  .string()
  .refine((text) => hasLength(text, 0, SEARCH_PARAMS_LENGTH_MAX), SEARCH_RULE)
  .transform((text, ctx) => {
    const parsed = search.safeParse(parseOrUndefined(text));
    if (!parsed.success) {
      ctx.issues.push({ code: 'custom', message: SEARCH_RULE, input: text });
      return z.NEVER;
    }
    const { searchString, categories } = parsed.data;
    return categories.length === 0 ? '' : searchString;
  });

function parseOrUndefined(text: string): unknown {
  try {
    return parseJsonBody(Buffer.from(text));
  } catch {
    return undefined;
  }
}

/** What get-files-table is asked. */
export const filesTableQuery = applicationQuery.extend({
  currentPage: currentPage.optional().meta({
    type: 'integer',
    minimum: 1,
    description: 'Page number, 1 by default. A page after the last one is empty.',
    examples: [1],
  }),
  searchParams: searchParams.optional().meta({
    description:
      'JSON text `{"searchString": "…", "categories": ["Name"]}`. Without text or without a category it filters nothing.',
    examples: ['{"searchString":"setup","categories":["Name"]}'],
  }),
});
