/** True if PostgreSQL stores the text unchanged: it has no NUL and no lone surrogate. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** True for storable text of 1 to `lengthMax` UTF-16 code units. */
export function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= lengthMax && isStorable(value);
}

/** True if a trimmed text is storable and its number of code points is within the bounds. */
export function hasLength(text: string, min: number, max: number): boolean {
  if (text.length > max * 2 || !isStorable(text)) return false;
  const { length } = Array.from(text);
  return length >= min && length <= max;
}

/** A whole number with commas. `toLocaleString` loads some MiB of locale data with its first use. */
export const formatCount = (n: number | bigint) => String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
