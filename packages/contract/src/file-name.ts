import { describeLength } from './lengths.ts';

export const FILE_NAME_LENGTH_MAX = 16;

/** {@link FILE_NAME_LENGTH_MAX} in words. */
export const FILE_NAME_LENGTH = describeLength({ min: 1, max: FILE_NAME_LENGTH_MAX });

/**
 * A file name without invisible characters and outer white space: ASCII letters, digits,
 * underscores and dashes, with single spaces or dots between them.
 */
export const FILE_NAME = /^[A-Za-z0-9_-]+(?:[ .][A-Za-z0-9_-]+)*$/;

export const isFileName = (text: string) => text.length <= FILE_NAME_LENGTH_MAX && FILE_NAME.test(text);

/** A text that a file name may contain: the same characters. */
export const PART_OF_FILE_NAME = new RegExp(`^[A-Za-z0-9_. -]{1,${FILE_NAME_LENGTH_MAX}}$`);

/** The rule of file names in words, for error details. */
export const FILE_NAME_RULE = `must be ${FILE_NAME_LENGTH}: ASCII letters, digits, underscores and dashes, with single spaces or dots between them`;
