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

/** The text in Unicode's NFC without control and format characters, those of no width, and white space around. */
export function withoutInvisible(text: string): string {
  return text.normalize('NFC').replace(INVISIBLE, '').trim();
}
