import { DEADLINES_MS } from '../deadlines.ts';

export const SERVER_LIMITS = {
  /** Concurrent calls of all protocols; health checks and reflection are not counted. */
  calls: 1_000,
  /** Connections on each port, and those of one network. */
  connections: 10_000,
  connectionsPerIp: 1_000,
  /** Time for the head of a request, and for the preface of an HTTP/2 session. */
  headMs: 10_000,
  /** Time for the body of a request, HTTP routes aside. */
  bodyMs: DEADLINES_MS.longest,
  /** Time for a health check without a credential; an unreachable database takes less to show. */
  openCallMs: 10_000,
  /** Time without a call after which an HTTP/2 session is closed. */
  idleMs: 5 * 60_000,
  /** Time for a call over HTTP/2: its deadline, and time to send the bytes. */
  callMs: DEADLINES_MS.longest + 60_000,
};

export type ServerLimits = Readonly<typeof SERVER_LIMITS>;
