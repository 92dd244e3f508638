/** What the server accepts as the name of a file. It holds no folder and is no hidden file. */
export const FILE_NAME = /^[A-Za-z0-9_-]+(?:[ .][A-Za-z0-9_-]+)*$/;
