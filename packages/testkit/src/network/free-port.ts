export { findFreePort } from '@latchkey/embedded/process/free-port';
