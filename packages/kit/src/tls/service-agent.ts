import {
  type AgentOptions,
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { ServiceTls } from './service-tls.ts';

/** An agent of Node's whose connections are used once, each with the certificate that is there by then. */
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
