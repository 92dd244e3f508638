export { findFreePort } from '@latchkey/embedded/free-port';
