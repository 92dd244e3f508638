import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Property names that never reach a log line, at the top level or one level down. */
const SECRET_PROPERTIES = [
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'token',
  'csrfToken',
  'secret',
  'plaintextKey',
  'socketKey',
  'httpKey',
  'apiKey',
  'sessionToken',
];

/**
 * A structured logger of one service. Lines are JSON on standard output, buffered up to 4 KiB, unless a destination is given.
 * The id of a request is the property `requestId` on each line that belongs to one.
 */
export function createLogger(name: string, level: string, destination?: DestinationStream): Logger {
  const stream = destination ?? pino.destination({ fd: 1, sync: false, minLength: 4096, periodicFlush: 500 });
  const paths = SECRET_PROPERTIES.flatMap((property) => [`["${property}"]`, `*["${property}"]`]);
  return pino({ name, level, redact: { paths, censor: '[redacted]' }, base: { service: name, pid: process.pid } }, stream);
}
