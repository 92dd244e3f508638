import { findFreePort as find } from '@latchkey/embedded/free-port';

/**
 * A port of 127.0.0.1 for what is to be there again after a time in which nothing listens, or never: unlike one that the system gives, no outgoing
 * connection takes it meanwhile, and nobody who tries it connects to itself.
 */
export const findFreePort: () => Promise<number> = find;
