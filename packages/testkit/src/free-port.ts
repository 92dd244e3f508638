import { findFreePort as find } from '@latchkey/embedded/free-port';

/**
 * A port of 127.0.0.1 outside the system's range for outgoing connections, so that it stays free.
 */
export const findFreePort: () => Promise<number> = find;
