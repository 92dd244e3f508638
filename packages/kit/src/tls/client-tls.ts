import * as http from 'node:http';
import * as https from 'node:https';
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';
import { DEADLINES_MS } from '../rpc/deadlines.ts';
import type { ServiceTls } from './service-tls.ts';

/** Opens connections of an undici pool, each with the current certificate. */
export function createConnector(tls: ServiceTls | undefined): buildConnector.connector {
  const connect = () =>
    buildConnector({ timeout: DEADLINES_MS.connect, allowH2: false, ...(tls && { secureContext: tls.context }) });
  let connector = connect();
  // A new connector has no TLS sessions of the old certificate to resume.
  tls?.onRenewal(() => {
    connector = connect();
  });
  return (options, callback) => connector(options, callback);
}

/** An agent of Node whose connections serve one request, each with the current certificate. */
export function createAgent(tls: ServiceTls | undefined): http.Agent {
  if (!tls) return new http.Agent({ keepAlive: false });
  const agent = new https.Agent({ keepAlive: false });
  const createConnection = agent.createConnection.bind(agent);
  agent.createConnection = (options, ...rest) =>
    createConnection({ ...options, secureContext: tls.context } as http.AgentOptions, ...rest);
  return agent;
}

/** Node's `request`, for either scheme. Fails unless it gets a connection in time. */
export function request(url: URL | string, options: http.RequestOptions): http.ClientRequest {
  const isSecure = new URL(url).protocol === 'https:';
  const req = isSecure ? https.request(url, options) : http.request(url, options);
  // Node's own time-outs also count what comes after the connection.
  return req.once('socket', (socket: Socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => req.destroy(new Error('no connection in time')), DEADLINES_MS.connect);
    const clear = () => clearTimeout(timer);
    socket.once(isSecure ? 'secureConnect' : 'connect', clear).once('close', clear);
  });
}
