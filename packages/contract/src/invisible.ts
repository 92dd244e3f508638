/** Whole runs, as each match costs more than its characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]+/gu;

/** In UTF-16 units. NFC takes quadratic time, and leaves at least a quarter of a text. */
const NORMALIZED_LENGTH_MAX = 512;

/**
 * Removes control, format and zero-width characters and outer white space, and normalises to NFC.
 * A text too long for any name of 64 code points is not normalised.
 */
export function withoutInvisible(text: string): string {
  const visible = text.replace(INVISIBLE, '').trim();
  if (visible.length > NORMALIZED_LENGTH_MAX) return visible;
  return text.normalize('NFC').replace(INVISIBLE, '').trim();
}
