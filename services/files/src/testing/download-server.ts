import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DownloadHandler } from '../storage/download/download-handler.ts';

export const REQUEST_ID = 'download-test';

/** An answer, read to its end. */
export interface Answer {
  /** 0 where the connection ended without one. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** True if the body had the length that was announced. */
  readonly whole: boolean;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Called when the first bytes of the body have come. */
  readonly onFirstBytes?: () => void;
}

export type DownloadServer = Awaited<ReturnType<typeof startDownloadServer>>;

/** The handler behind an HTTP server. */
export async function startDownloadServer(handle: DownloadHandler) {
  let underWay = 0;
  const server = createServer((req, res) => {
    underWay += 1;
    const network = req.headers['x-test-network'];
    void handle(req, res, REQUEST_ID, typeof network === 'string' ? network : 'a network').finally(() => {
      underWay -= 1;
    });
  });
  // A connection that the handler leaves open stays open.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    /** Fetches the path of a URL, from this server. */
    fetch: (url: string, options: RequestOptions = {}) => fetchPath(port, new URL(url, 'http://localhost').pathname, options),
    /** Requests that are being answered. */
    underWay: () => underWay,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function fetchPath(port: number, path: string, { method = 'GET', headers = {}, onFirstBytes }: RequestOptions): Promise<Answer> {
  return new Promise((resolve) => {
    // With a persistent connection, a body that was cut short differs from one that ended.
    const persistent = { connection: 'keep-alive', ...headers };
    const req = request({ port, path, method, headers: persistent, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      if (onFirstBytes) res.once('data', onFirstBytes);
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('error', () => undefined);
      res.on('close', () =>
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks), whole: res.complete }),
      );
    });
    req.on('error', () => resolve({ status: 0, headers: {}, body: Buffer.alloc(0), whole: false })).end();
  });
}
