import { type DestinationStream, type Logger, pino } from 'pino';
import { lineFacts } from './call-origin.ts';

export type { Logger } from 'pino';

/** Property names whose values never reach a log line. */
const SECRET_PROPERTIES = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'x-csrf-token',
  'password',
  'token',
  'csrfToken',
  'secret',
  'plaintextKey',
  'socketKey',
  'httpKey',
  'apiKey',
  'sessionToken',
  // Of the commands that ioredis puts on its errors: with AUTH and HELLO, they are the password.
  'args',
]);

/** How far down secrets are looked for; what is deeper is left out, so that nothing slips through. */
const DEPTH_MAX = 5;

const REDACTED = '[redacted]';

/** Lines that nobody reads are dropped beyond this much, rather than memory filled. */
const BUFFER_BYTES_MAX = 8 * 1024 * 1024;

/**
 * A structured logger of one service. Lines are JSON on standard output, buffered up to 4 KiB, unless a destination is given.
 * The id of a request is the property `requestId` on each line that belongs to one; where it is traced, `trace_id` and `span_id` are beside it.
 */
export function createLogger(name: string, level: string, destination?: DestinationStream): Logger {
  const stream =
    destination ?? pino.destination({ fd: 1, sync: false, minLength: 4096, periodicFlush: 500, maxLength: BUFFER_BYTES_MAX });
  const options = {
    level,
    base: { service: name, pid: process.pid },
    // pino's own redaction with wildcards makes a line three times as dear.
    formatters: { log: redact },
    mixin: lineFacts as () => object,
    // What the line itself says comes first. Mostly there is nothing to add.
    mixinMergeStrategy: (line: object, facts: object | undefined) => (facts ? { ...facts, ...line } : line),
    // Errors are plain facts by then.
    serializers: { err: (err: unknown) => err },
  };
  return pino(options, stream);
}

type Facts = Record<string, unknown>;

/** The same facts without secrets: a copy where there were some, and the very object where there were none. */
function redact(facts: Facts): Facts {
  return redactBelow(facts, DEPTH_MAX);
}

function redactBelow(facts: Facts, depth: number): Facts {
  let copy: Facts | undefined;
  for (const key of Object.keys(facts)) {
    const value = facts[key];
    const safe = SECRET_PROPERTIES.has(key) ? REDACTED : redactValue(value, depth);
    if (safe === value) continue;
    copy ??= { ...facts };
    copy[key] = safe;
  }
  return copy ?? facts;
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  // An error's own properties would be written as they are.
  if (value instanceof Error) return redactBelow(pino.stdSerializers.err(value) as unknown as Facts, depth - 1);
  if (depth === 0) return '[deep]';
  if (!Array.isArray(value)) return redactBelow(value as Facts, depth - 1);
  const safe = value.map((item) => redactValue(item, depth - 1));
  return safe.some((item, index) => item !== value[index]) ? safe : value;
}
