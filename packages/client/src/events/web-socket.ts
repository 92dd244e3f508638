import { Connection } from './connection.ts';
import type { ListenOptions, WebSocketClass } from './events.ts';

interface WebSocketLike {
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onerror: (() => void) | null;
  close(): void;
}

/** Connects as browsers do, which cannot set headers: the key is a sub-protocol. */
export function connectWebSocket(
  WebSocket: WebSocketClass,
  { url, socketKey, signal }: ListenOptions,
  lastEventId: string | undefined,
): Connection {
  const address = new URL(url);
  if (lastEventId !== undefined) address.searchParams.set('lastEventId', lastEventId);
  const socket = new WebSocket(address.href, ['cloudevents.json', `bearer.${socketKey}`]) as WebSocketLike;
  const connection = new Connection(() => socket.close(), signal);
  // A browser hides the service's pings, but reports a change of the network. The connection is
  // likely dead then, which would stay unnoticed for minutes.
  onOnline(() => connection.end({ code: 1006, reason: 'the network changed' }), connection.whenEnded);
  socket.onclose = ({ code, reason }) => connection.end({ code, reason: reason || `closed with ${code}` });
  // Node.js would report an error without a listener; `close` follows.
  socket.onerror = () => undefined;
  socket.onmessage = ({ data }) => connection.receive(String(data));
  return connection;
}

/** Calls back when a browser is online again; never elsewhere. */
export function onOnline(callback: () => void, signal: AbortSignal): void {
  const { addEventListener } = globalThis as { readonly addEventListener?: EventTarget['addEventListener'] };
  addEventListener?.call(globalThis, 'online', callback, { signal });
}
