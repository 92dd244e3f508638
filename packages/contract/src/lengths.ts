/** Bounds of a text, in Unicode code points. */
export interface Length {
  readonly min: number;
  readonly max: number;
}

export const APPLICATION_NAME: Length = { min: 6, max: 32 };
export const KEY_NAME: Length = { min: 3, max: 64 };
export const VERSION: Length = { min: 1, max: 64 };
export const PASSWORD: Length = { min: 10, max: 128 };

export const EMAIL_LENGTH_MAX = 254;

/** Longest `searchParams` of the files table. */
export const SEARCH_PARAMS_LENGTH_MAX = 1_024;

/** The bounds in words, such as "6 to 32 characters". */
export const describeLength = ({ min, max }: Length) => `${min} to ${max} characters`;
