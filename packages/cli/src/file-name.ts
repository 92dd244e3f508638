/** The server's rule for file names. They contain no folder and no leading dot. */
export const FILE_NAME = /^[A-Za-z0-9_-]+(?:[ .][A-Za-z0-9_-]+)*$/;
