import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The write that is interrupted: before it is sent, within its body, or before its response. */
export interface Interruption {
  /** From 1. */
  readonly write: number;
  readonly when: 'before' | 'during' | 'after';
}

/** Forwards requests until one is interrupted, then no more, as if their client had been killed. */
export async function startInterruptingProxy(targetUrl: string) {
  let interruption: Interruption | undefined;
  let writes = 0;
  let isCut = false;
  const server = createServer((req, res) => {
    if (isCut) return void req.socket.destroy();
    if (req.method !== 'GET') writes += 1;
    isCut = req.method !== 'GET' && writes === interruption?.write;
    forward(targetUrl, req, res, isCut ? interruption?.when : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Begins anew; undefined forwards every request. */
    arm(next: Interruption | undefined) {
      [interruption, writes, isCut] = [next, 0, false];
    },
    hasInterrupted: () => isCut,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function forward(targetUrl: string, req: IncomingMessage, res: ServerResponse, cut: Interruption['when'] | undefined): void {
  if (cut === 'before') return void req.socket.destroy();
  const { expect: _unused, ...headers } = req.headers;
  const forwarded = request(`${targetUrl}${req.url}`, { method: req.method ?? 'GET', headers });
  forwarded.on('error', () => req.socket.destroy());
  if (cut === 'during') {
    req.once('data', (chunk: Buffer) => {
      forwarded.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => {
        forwarded.destroy();
        req.socket.destroy();
      });
    });
    return;
  }
  forwarded.once('response', (response) => {
    if (cut === 'after') return void response.resume().once('end', () => req.socket.destroy());
    res.writeHead(response.statusCode ?? 502, response.headers);
    response.pipe(res);
  });
  req.pipe(forwarded);
}
