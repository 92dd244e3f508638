import { constants } from 'node:crypto';
import type { Server as NetServer, Socket } from 'node:net';
import type { TLSSocket, TlsOptions } from 'node:tls';
import type { LogRejection } from '../rpc/server/rejection-log.ts';
import type { ServiceTls } from './service-tls.ts';

const HANDSHAKE_TIMEOUT_MS = 5_000;

/** Longest time-out that a timer can hold, in milliseconds. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Options of a server that accepts only peers with a certificate of the authority. */
export function serverTlsOptions(tls: ServiceTls): TlsOptions {
  return { ...contextOptions(tls), requestCert: true, rejectUnauthorized: true, handshakeTimeout: HANDSHAKE_TIMEOUT_MS };
}

/** Without tickets: a resumed session would outlive the certificate that it began with. */
function contextOptions({ files }: ServiceTls): TlsOptions {
  return { ...files, secureOptions: constants.SSL_OP_NO_TICKET };
}

/**
 * Uses renewed files for new connections, and logs failed handshakes, as of peers without a trusted
 * certificate, but not those that the peer abandoned.
 */
export function secureServer(server: TlsServer, tls: ServiceTls, log: LogRejection): void {
  tls.onRenewal(() => server.setSecureContext(contextOptions(tls)));
  // The address is cached when it is first read, and unknown once the connection is closed.
  server.on('connection', (socket: Socket) => void socket.remoteAddress);
  server.on('tlsClientError', (err: NodeJS.ErrnoException, { authorizationError, _parent: socket }: Wrapped) => {
    const reason = authorizationError ? String(authorizationError) : err.code;
    if (reason !== undefined && reason !== 'ECONNRESET') log(socket?.remoteAddress, { reason });
  });
}

type TlsServer = NetServer & { setSecureContext(options: TlsOptions): void };

/** Node's undocumented link to the connection below, which knows the peer's address longer. */
type Wrapped = TLSSocket & { readonly _parent?: Socket };

/**
 * Calls back when a connection is no longer trusted: its peer's certificate expires, or the files
 * change, as they may contain another authority. A peer that is still trusted connects again.
 */
export function whenUntrusted(tls: ServiceTls, socket: TLSSocket, end: () => void): void {
  const validTo = socket.getPeerX509Certificate()?.validToDate.getTime() ?? 0;
  const timer = setTimeout(end, Math.min(validTo - Date.now(), TIMER_MS_MAX)).unref();
  const unsubscribe = tls.onRenewal(end);
  socket.once('close', () => {
    clearTimeout(timer);
    unsubscribe();
  });
}
