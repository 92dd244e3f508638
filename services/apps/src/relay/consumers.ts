/**
 * The queues that events go to, each with the types of event that it wants, as the log's rows have them. Those that live clients wait for come
 * first. Every type is wanted by one at least.
 */
export const CONSUMERS: Readonly<Record<string, ReadonlySet<string>>> = {
  // That an HTTP key was rotated concerns no live client. It is sent all the same, as it is rare and what is sent is told apart by type alone.
  realtime: new Set(['paused', 'resumed', 'version_changed', 'deleted', 'runtime_key_rotated']),
  files: new Set(['deleted']),
  identity: new Set(['deleted']),
};

/** The names of all queues. */
export const QUEUES: readonly string[] = Object.keys(CONSUMERS);
