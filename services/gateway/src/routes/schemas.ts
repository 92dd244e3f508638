import { hasLength, isStorable, withoutInvisible } from '@latchkey/kit/text';
import { z } from 'zod';

/** Text of so many code points once trimmed. */
export function trimmedText(min: number, max: number, description: string) {
  return z
    .string()
    .trim()
    .refine((text) => hasLength(text, min, max))
    .meta({ description, minLength: min, maxLength: max });
}

/** A name of so many code points: what is left in NFC without invisible characters and white space around (decisions 6). */
export function nameText(min: number, max: number, description: string) {
  return z
    .string()
    .overwrite(withoutInvisible)
    .refine((text) => hasLength(text, min, max))
    .meta({ description, minLength: min, maxLength: max });
}

/** Any text that a service may be handed. What it names, if anything, is the service's to say. */
export const anyText = z.string().refine(isStorable);

/** What some account may have been made with, whether or not it may be now: text of up to so many code points. */
export function nonEmptyText(max: number) {
  return z
    .string()
    .refine((text) => hasLength(text, 1, max))
    .meta({ minLength: 1, maxLength: max });
}

/** A code of a second factor. What can be none, however long, is the service's to refuse (decisions 3). */
export const twoFactorCode = z.string();

const FILE_NAME = /^[A-Za-z0-9_-]+(?:[ .][A-Za-z0-9_-]+)*$/;
const FILE_NAME_LENGTH_MAX = 16;

/** A file name; what is checked and passed on is what is left without invisible characters and white space around (specification 2.5). */
export const fileName = z
  .string()
  .overwrite(withoutInvisible)
  .max(FILE_NAME_LENGTH_MAX)
  .regex(FILE_NAME)
  .meta({ description: 'File name, checked without invisible characters and white space around.', examples: ['setup-1.2.exe'] });

/** An id; text that is no UUID names nothing and is no schema's concern (decisions 1). */
export const idText = z.string().meta({ format: 'uuid' });

export const applicationQuery = z.object({ applicationId: idText.meta({ description: 'Application id.', format: 'uuid' }) });

/** ISO 8601, UTC, milliseconds. */
export const timestamp = z.string().meta({ format: 'date-time', examples: ['2026-05-12T09:00:00.000Z'] });
