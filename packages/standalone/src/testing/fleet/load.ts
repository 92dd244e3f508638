import { Agent, type IncomingMessage, request } from 'node:http';
import { createApplication, createKey, signUp } from '../caller.ts';
import type { Fleet } from './fleet.ts';

/** A request that did not end with 200, in words. */
export interface LoadReport {
  readonly requests: number;
  readonly failed: readonly string[];
}

/** Requests that go on until they are stopped. */
export interface Load {
  /** How many have ended so far. */
  count(): number;
  stop(): Promise<LoadReport>;
}

/** What is asked for under load. */
export interface LoadOptions {
  /** Requests at once; 12 unless set. */
  readonly workers?: number;
  /** Whether every fourth sends a change, and not a read; it is unless set. */
  readonly writes?: boolean;
}

/**
 * Reads and changes settings of an application of a new account, through the balancer of the gateways. Nothing is tried twice. Every request has a
 * connection of its own: what a client of many requests on one connection loses as a gateway closes it is that client's to send again.
 */
export async function startLoad(fleet: Fleet, { workers = 12, writes = true }: LoadOptions = {}): Promise<Load> {
  const { api } = await createKey(await signUp(fleet.api));
  const applicationId = await createApplication(api);
  const headers = { ...api.headers, 'content-type': 'application/json' };
  const agent = new Agent({ keepAlive: false });
  const failed: string[] = [];
  let requests = 0;
  let stopped = false;
  const send = (body?: string) => {
    const path = `/api/v1/panel/${body ? 'update' : 'get'}-application-settings?applicationId=${applicationId}`;
    return ended(fleet.baseUrl + path, { agent, headers, method: body ? 'PATCH' : 'GET' }, body);
  };
  const work = async (worker: number) => {
    while (!stopped) {
      const isWrite = writes && worker % 4 === 0;
      const outcome = await send(isWrite ? JSON.stringify({ field: 'version', value: String(requests) }) : undefined);
      requests += 1;
      if (!outcome.startsWith('200')) failed.push(`${isWrite ? 'PATCH' : 'GET'} ${outcome}`);
    }
  };
  const working = Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
  return {
    count: () => requests,
    async stop() {
      stopped = true;
      await working;
      return { requests, failed };
    },
  };
}

function ended(url: string, options: object, body: string | undefined): Promise<string> {
  return new Promise((resolve) => {
    const fail = (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message);
    const req = request(url, options, (res: IncomingMessage) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      res.on('error', fail).on('end', () => resolve(`${res.statusCode} ${text.slice(0, 200)}`));
    });
    req.on('error', fail).end(body);
  });
}
