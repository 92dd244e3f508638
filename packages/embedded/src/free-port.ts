import { createServer } from 'node:net';

/** Below what systems give to outgoing connections, so that none takes a port before it is listened on, or while its process is down. */
const PORT_MIN = 10_000;
const PORTS = 22_000;
/** How far apart processes begin that were started one after the other: each needs fewer. */
const STRIDE = 64;

let next = (process.pid * STRIDE) % PORTS;
const kept = new Set<number>();

/** Has none of these found from now on: somebody is to listen on them who does not yet. */
export function keepFree(...ports: readonly number[]): void {
  for (const port of ports) kept.add(port);
}

/**
 * A TCP port of 127.0.0.1 that nothing listens on at the moment of asking, another one each time. Processes look in places of their own, yet
 * one may take it before the caller does, so whoever binds it must be ready to ask again.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < PORTS; tries += 1) {
    const port = PORT_MIN + next;
    next = (next + 1) % PORTS;
    if (!kept.has(port) && (await canListen(port))) return port;
  }
  throw new Error(`None of the ports from ${PORT_MIN} to ${PORT_MIN + PORTS - 1} is free.`);
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
