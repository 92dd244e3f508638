import {
  type AgentOptions,
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { buildConnector } from 'undici';
import type { ServiceTls } from './service-tls.ts';

/** Longest wait for a connection of a pool, its handshake included, in milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;

/** How an undici pool opens connections, each with the current certificate. */
export function createConnector(tls: ServiceTls | undefined): buildConnector.connector {
  const connect = () =>
    buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false, ...(tls && { secureContext: tls.context }) });
  let connector = connect();
  // A new connector has no TLS sessions of the old certificate to resume.
  tls?.onRenewal(() => {
    connector = connect();
  });
  return (options, callback) => connector(options, callback);
}

/** An agent of Node whose connections serve one request, each with the current certificate. */
export function createAgent(tls: ServiceTls | undefined): HttpAgent {
  return tls ? new ServiceAgent(tls) : new HttpAgent({ keepAlive: false });
}

class ServiceAgent extends HttpsAgent {
  readonly #tls: ServiceTls;

  constructor(tls: ServiceTls) {
    super({ keepAlive: false });
    this.#tls = tls;
  }

  override createConnection(options: AgentOptions, callback?: Parameters<HttpsAgent['createConnection']>[1]) {
    return super.createConnection({ ...options, secureContext: this.#tls.context } as AgentOptions, callback);
  }
}

/** Node's `request`, for either scheme. */
export function request(url: URL | string, options: RequestOptions): ClientRequest {
  return new URL(url).protocol === 'https:' ? httpsRequest(url, options) : httpRequest(url, options);
}
