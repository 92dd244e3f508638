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

/** A whole number with commas. `toLocaleString` loads some MiB of locale data with its first use. */
export const formatCount = (n: number | bigint) => String(n).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
