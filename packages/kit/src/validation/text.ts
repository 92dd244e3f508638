/** True if PostgreSQL stores the text unchanged: it has no NUL and no lone surrogate. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** True if a trimmed text is storable and its number of code points is within the bounds. */
export function hasLength(text: string, min: number, max: number): boolean {
  if (text.length > max * 2 || !isStorable(text)) return false;
  const { length } = Array.from(text);
  return length >= min && length <= max;
}

/** Whole runs, as each match costs more than its characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]+/gu;

/** In UTF-16 units. NFC takes quadratic time, and quarters a text at most. */
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

/** A whole number with commas. `toLocaleString` loads some MiB of locale data with its first use. */
export const formatCount = (n: number | bigint) => String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
