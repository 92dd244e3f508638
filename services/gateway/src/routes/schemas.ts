import { hasLength, isStorable } from '@latchkey/kit/text';
import { z } from 'zod';

/** Text of so many code points once trimmed. */
export function trimmedText(min: number, max: number, description: string) {
  return z
    .string()
    .trim()
    .refine((text) => hasLength(text, min, max))
    .meta({ description, minLength: min, maxLength: max });
}

/** Any text that a service may be handed. What it names, if anything, is the service's to say. */
export const anyText = z.string().refine(isStorable);

/** An id; text that is no UUID names nothing and is no schema's concern (decisions 1). */
export const idText = z.string().meta({ format: 'uuid' });

export const applicationQuery = z.object({ applicationId: idText.meta({ description: 'Application id.', format: 'uuid' }) });

/** ISO 8601, UTC, milliseconds. */
export const timestamp = z.string().meta({ format: 'date-time', examples: ['2026-05-12T09:00:00.000Z'] });
