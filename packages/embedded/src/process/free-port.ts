import { createServer } from 'node:net';

/** Below the ports that systems give to outgoing connections, which so never take one of these. */
const PORT_MIN = 10_000;
const PORTS = 22_000;
/** Distance between the first ports of two processes with consecutive pids. */
const STRIDE = 64;

let next = (process.pid * STRIDE) % PORTS;
/** And 10080, which `fetch` and browsers reject. */
const reserved = new Set<number>([10_080]);

export function keepFree(...ports: readonly number[]): void {
  for (const port of ports) reserved.add(port);
}

/**
 * A free TCP port of 127.0.0.1, another one each time. Another process may take
 * it before the caller does.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < PORTS; tries += 1) {
    const port = PORT_MIN + next;
    next = (next + 1) % PORTS;
    if (!reserved.has(port) && !(await findListenError({ host: '127.0.0.1', port }))) return port;
  }
  throw new Error(`None of the ports from ${PORT_MIN} to ${PORT_MIN + PORTS - 1} is free.`);
}

/** The error of a server that can't listen on an address; undefined where one can. */
export function findListenError(address: { readonly host: string; readonly port: number }): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen({ ...address }, () => probe.close(() => resolve(undefined)));
  });
}
