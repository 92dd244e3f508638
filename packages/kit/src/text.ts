/** Whether PostgreSQL can store the text as it is: no NUL, and no surrogate without its other half. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Length in Unicode code points. */
export function codePointLength(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** Whether the text, which must be trimmed already, is storable and has so many code points. */
export function hasLength(text: string, min: number, max: number): boolean {
  if (text.length > max * 2 || !isStorable(text)) return false;
  const length = codePointLength(text);
  return length >= min && length <= max;
}

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Longest text, without what is removed, that is normalised, in UTF-16 units. NFC takes quadratic time
 * for a run of combining marks, and makes no text shorter than a quarter.
 */
const NORMALIZED_LENGTH_MAX = 512;

/**
 * The text in Unicode's NFC without control and format characters, those of no width, and white space around.
 * What is too long for a name of 64 code points, whatever NFC makes of it, is not normalised.
 */
export function withoutInvisible(text: string): string {
  const visible = text.replace(INVISIBLE, '').trim();
  if (visible.length > NORMALIZED_LENGTH_MAX) return visible;
  return text.normalize('NFC').replace(INVISIBLE, '').trim();
}
