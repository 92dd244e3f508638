import { buildConnector } from 'undici';
import type { ServiceTls } from './service-tls.ts';

/** Longest wait for a connection of a pool, its handshake included, in milliseconds. */
const CONNECT_TIMEOUT_MS = 2_000;

/** How a pool opens its connections: each with the certificate that is there by then. */
export function createConnector(tls: ServiceTls | undefined): buildConnector.connector {
  const connect = () =>
    buildConnector({ timeout: CONNECT_TIMEOUT_MS, allowH2: false, ...(tls && { secureContext: tls.context }) });
  let connector = connect();
  tls?.onChange(() => {
    // What was negotiated with the certificate before goes with the connector that keeps it.
    connector = connect();
  });
  return (options, callback) => connector(options, callback);
}
