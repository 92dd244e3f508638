import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript' };

export interface PageServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Forwards requests as a reverse proxy does; responses lack the dropped headers. */
export function proxyTo(baseUrl: string, droppedHeaders: readonly string[] = []): RequestListener {
  return (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming;
    const forwarded = request(new URL(url, baseUrl), { method, headers }, (answer) => {
      for (const name of droppedHeaders) delete answer.headers[name];
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  };
}

/** Serves a folder, and the interface below /api as a reverse proxy does. */
export async function startPageServer(folder: string, baseUrl: string): Promise<PageServer> {
  const proxy = proxyTo(baseUrl);
  const server = createServer(async (incoming, outgoing) => {
    const { pathname } = new URL(incoming.url ?? '', 'http://localhost');
    if (pathname.startsWith('/api/')) return proxy(incoming, outgoing);
    const content = await readFile(join(folder, normalize(pathname))).catch(() => undefined);
    const type = TYPES[extname(pathname)] ?? 'application/octet-stream';
    outgoing.writeHead(content ? 200 : 404, { 'content-type': type }).end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
