import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';

/** Error name of a stalled request. The AWS SDK does not retry a request that fails with it. */
export const STALLED = 'StalledError';

/** Longest pause within a response, in milliseconds, as its reader may pause. */
const RESPONSE_PAUSE_MS_MAX = 15_000;

export interface WatchedSocket {
  readonly connecting: boolean;
  readonly bytesRead: number;
  readonly writableLength: number;
  setTimeout(timeoutMs: number): unknown;
  on(event: 'timeout', listener: () => void): unknown;
  destroy(err: Error): unknown;
}

/**
 * Agents that end a request on whose connection no byte has moved for `stallMs`, until the response
 * begins. A slow request goes on: the limits of the AWS SDK count either the whole request, or half
 * of the time set for silence.
 */
export function createStallAgents(maxSockets: number, stallMs: number): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  const options = { keepAlive: true, maxSockets };
  return {
    httpAgent: watchConnections(new HttpAgent(options), stallMs),
    httpsAgent: watchConnections(new HttpsAgent(options), stallMs),
  };
}

function watchConnections<A extends HttpAgent>(agent: A, stallMs: number): A {
  const begins = new WeakMap<Duplex, () => void>();
  const createConnection = agent.createConnection.bind(agent);
  agent.createConnection = (...args: Parameters<typeof createConnection>) => {
    const socket = createConnection(...args);
    if (socket) {
      const begin = watchSocket(socket as Duplex & WatchedSocket, stallMs);
      begins.set(socket, begin);
      begin();
    }
    return socket;
  };
  const reuseSocket = agent.reuseSocket.bind(agent);
  agent.reuseSocket = (socket, request) => {
    reuseSocket(socket, request);
    begins.get(socket)?.();
  };
  return agent;
}

/** Watches a connection. Returns a function to call as each of its requests begins. */
export function watchSocket(socket: WatchedSocket, stallMs: number): () => void {
  const stepMs = stallMs / 2;
  let bytesReadBefore = 0;
  let bytesReadAtPause = -1;
  socket.on('timeout', () => {
    const { connecting, bytesRead, writableLength } = socket;
    // Node reports silence while it writes only after the kernel took no byte between two checks.
    const isSending = !connecting && writableLength > 0;
    if (isSending || bytesRead === bytesReadAtPause) {
      socket.destroy(Object.assign(new Error('no byte moved'), { name: STALLED }));
      return;
    }
    bytesReadAtPause = bytesRead;
    socket.setTimeout(bytesRead > bytesReadBefore ? RESPONSE_PAUSE_MS_MAX : stepMs);
  });
  return () => {
    bytesReadBefore = socket.bytesRead;
    bytesReadAtPause = -1;
    socket.setTimeout(stepMs);
  };
}
