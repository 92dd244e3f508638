/**
 * Deadlines of calls between services, and the waits that must end within them, in milliseconds. A
 * test checks that a callee ends before its caller, so that its error reaches the client.
 */
export const DEADLINES_MS = {
  /** Longest that a server accepts, and that of calls without one. */
  longest: 60_000,
  /** Any call of the gateway: clients get an error within 5 s. */
  gateway: 4_500,
  /** The gateway's calls in which identity calls an issuer. */
  gatewayIssuer: 16_000,
  /** Discovery of an issuer, or all calls of a sign-in. */
  issuerStep: 10_000,
  issuer: 4_000,
  /** The gateway's calls in which files reads whole files of a release, the largest of 150 MiB. */
  gatewayInspection: 25_000,
  /** Wait of such a reading for those before it. */
  inspectionQueue: 20_000,
  /** The apps service, for files, identity and realtime: a second try after one that hangs fits. */
  apps: 3_500,
  /** A page of the applications of a deleted account, whose deletion goes on after the response. */
  deleteApplications: 4_000,
  /** Identity, which records an avatar while the upload waits. */
  setAvatar: 3_000,
  /** A page of deletions. The sweep repeats what fails. */
  listDeletions: 2_000,
  /** Waits of a change for those before it, and of a client that connects for the apps service. */
  queue: 4_000,
  /** Waits of a call for all its passwords. Without Redis it also waits for cached principals. */
  passwords: 2_500,
  passwordsWithoutRedis: 1_000,
  /** A connection, its handshake included. */
  connect: 2_000,
  databaseConnect: 1_750,
  databaseQuery: 2_500,
  /** A slow database reports it before the query times out, and the connection stays. */
  databaseStatement: 2_250,
};
