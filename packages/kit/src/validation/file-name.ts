export const FILE_NAME_LENGTH_MAX = 16;

/**
 * A file name without invisible characters and outer white space: ASCII letters, digits,
 * underscores and dashes, with single spaces or dots between them.
 */
export const FILE_NAME = /^[A-Za-z0-9_-]+(?:[ .][A-Za-z0-9_-]+)*$/;
