import { constants } from 'node:crypto';
import type { Server as NetServer, Socket } from 'node:net';
import type { Server, TLSSocket, TlsOptions } from 'node:tls';
import type { NoteRefusal } from '../rpc/refusal-log.ts';
import type { ServiceTls } from './service-tls.ts';
import type { TlsMaterial } from './tls-files.ts';

/** Longest time for a handshake, in milliseconds. */
const HANDSHAKE_TIMEOUT_MS = 5_000;

/** A timer can't be set for as long as a certificate may live. */
const LOOK_INTERVAL_MS_MAX = 3_600_000;

/** Options of a server that speaks only with peers whom the authority has signed: all others are refused before they have asked for anything. */
export function serverTlsOptions({ material }: ServiceTls): TlsOptions {
  return { ...contextOptions(material), requestCert: true, rejectUnauthorized: true, handshakeTimeout: HANDSHAKE_TIMEOUT_MS };
}

/** Has a server use what the files hold whenever that changes, for the connections to come. */
export function followChanges(tls: ServiceTls, server: { setSecureContext(options: TlsOptions): void }): void {
  tls.onChange((material) => server.setSecureContext(contextOptions(material)));
}

/**
 * Has connections end that are not to be trusted any more: those of a peer whose certificate expires, and all when the files change, as another authority
 * may be there then. Whoever is still trusted opens another one.
 *
 * @param end ends a connection as gently as its protocol can
 */
export function endWithTrust(tls: ServiceTls, server: Server, end: (socket: TLSSocket) => void): void {
  const open = new Set<TLSSocket>();
  server.on('secureConnection', (socket) => {
    const validTo = socket.getPeerX509Certificate()?.validToDate.getTime() ?? 0;
    let timer: NodeJS.Timeout | undefined;
    const look = () => {
      const leftMs = validTo - Date.now();
      if (leftMs <= 0) end(socket);
      else timer = setTimeout(look, Math.min(leftMs, LOOK_INTERVAL_MS_MAX)).unref();
    };
    look();
    open.add(socket);
    socket.once('close', () => {
      clearTimeout(timer);
      open.delete(socket);
    });
  });
  tls.onChange(() => {
    for (const socket of open) end(socket);
  });
}

/** A connection as Node has it: the one beneath, which still knows the peer's address when this one is over, has no name of its own. */
type Wrapped = TLSSocket & { readonly _parent?: Socket };

/** Has those noted with whom no connection was secured, as for want of a certificate that can be trusted. One who merely goes away is not refused. */
export function noteRefusedPeers(server: NetServer, note: NoteRefusal): void {
  // It is known from then on, and not any more where it is first asked for at the end.
  server.on('connection', (socket: Socket) => void socket.remoteAddress);
  server.on('tlsClientError', (err: NodeJS.ErrnoException, { authorizationError, _parent: socket }: Wrapped) => {
    const reason = authorizationError ? String(authorizationError) : err.code;
    if (reason !== undefined && reason !== 'ECONNRESET') note(socket?.remoteAddress, { reason });
  });
}

/** What a session is resumed from would stay good when the certificate that it began with has expired. */
function contextOptions({ cert, key, ca }: TlsMaterial): TlsOptions {
  return { cert, key, ca, secureOptions: constants.SSL_OP_NO_TICKET };
}
