/** White space that trimming removes, on either side of a text. */
export const SPACES = ' \t\r\n\v\f\u00a0\u2003\u2028\u3000\ufeff';

/** A character outside the basic plane: one code point, two UTF-16 units, four bytes. */
export const ASTRAL = '\u{1f511}';

/** Texts of the right length for most fields that PostgreSQL can't store as they are. */
export const UNSTORABLE = [
  'nul: \0abc',
  '\0abcdefg',
  'high \ud83d half',
  'abcdef\ud83d',
  'low \udd11 half',
  '\udd11\ud83dabcdef',
];
