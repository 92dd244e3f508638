import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import type { FastifyRequest } from 'fastify';
import type { GatewayConfig } from '../config.ts';

type Config = Pick<GatewayConfig, 'PUBLIC_REALTIME_URL' | 'REALTIME_PORT' | 'PORT'>;

/** Name or address, with a port or without. */
const HOST = /^[A-Za-z0-9._[\]:-]+$/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' };

/**
 * URL of live events for a browser that called us: `PUBLIC_REALTIME_URL`, else the host that
 * it called. There they have another port, unless a proxy serves both on a default port.
 * Undefined for a request without a valid host.
 */
export function realtimeUrlFor(request: Pick<FastifyRequest, 'protocol' | 'host'>, config: Config): URL | undefined {
  if (config.PUBLIC_REALTIME_URL !== undefined) return new URL(config.PUBLIC_REALTIME_URL);
  const { protocol, host } = request;
  const page = HOST.test(host) ? URL.parse(`${protocol}://${host}`) : null;
  if (!page) return undefined;
  const isDirect = page.port !== '' || DEFAULT_PORTS[protocol] === String(config.PORT);
  const port = isDirect ? `:${config.REALTIME_PORT}` : '';
  return new URL(`${protocol === 'https' ? 'wss' : 'ws'}://${page.hostname}${port}${REALTIME_PATH}`);
}
