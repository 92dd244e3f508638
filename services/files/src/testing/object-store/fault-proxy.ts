import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The requests of an upload. */
export type S3Operation = 'create' | 'part 1' | 'part 2' | 'complete' | 'put' | 'stat' | 'abort' | 'other';

/** Fate of a request. */
export type Fault = 'fails' | 'hangs' | 'is done and never answered' | 'is answered with an error and 200';

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

const ERROR = '<?xml version="1.0"?><Error><Code>InternalError</Code><Message>Try again</Message></Error>\n';

/** Puts a proxy before an S3 server, on which chosen requests go wrong. */
export async function startFaultProxy(endpoint: string) {
  let broken: { operation: S3Operation | 'all'; fault: Fault } | undefined;
  const seen: S3Operation[] = [];
  const server = createServer((req, res) => {
    const operation = operationOf(req);
    seen.push(operation);
    const fault = broken && (broken.operation === 'all' || broken.operation === operation) ? broken.fault : undefined;
    if (fault === 'fails') return answer(req, res, 503);
    // The trailing line end is what real servers add too.
    if (fault === 'is answered with an error and 200') return answer(req, res, 200);
    if (fault === 'hangs') return void req.resume();
    pass(endpoint, req, fault === undefined ? res : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests that have come so far, as `put` or `part 2`. */
    seen,
    /** Sets the fault from now on; none without arguments. */
    set: (operation?: S3Operation | 'all', fault?: Fault) => {
      broken = operation && fault ? { operation, fault } : undefined;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function operationOf({ method, url = '' }: IncomingMessage): S3Operation {
  const query = new URL(url, 'http://s3').searchParams;
  const part = query.get('partNumber');
  if (method === 'POST') return query.has('uploads') ? 'create' : query.has('uploadId') ? 'complete' : 'other';
  if (method === 'HEAD') return 'stat';
  if (method === 'DELETE' && query.has('uploadId')) return 'abort';
  if (method !== 'PUT') return 'other';
  if (part === null) return 'put';
  return part === '1' ? 'part 1' : 'part 2';
}

function answer(req: IncomingMessage, res: ServerResponse, status: number): void {
  const headers = { 'content-type': 'application/xml', 'content-length': ERROR.length };
  req.resume().on('end', () => res.writeHead(status, headers).end(ERROR));
}

/** Passes on a request with its signed headers, and the response where `res` is given. */
function pass(endpoint: string, req: IncomingMessage, res: ServerResponse | undefined): void {
  const { hostname, port } = new URL(endpoint);
  const upstream = request({ hostname, port, method: req.method, path: req.url, headers: req.headers, agent: false }, (reply) => {
    if (!res) return void reply.resume();
    res.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(res);
  });
  upstream.on('error', () => res?.destroy());
  req.pipe(upstream);
}
