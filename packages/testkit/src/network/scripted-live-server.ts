import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

/** Response of the server to one upgrade: a rejection, or a script for the socket. */
export type Turn = { readonly status: number; readonly headers?: Record<string, string> } | ((socket: WebSocket) => void);

export type ScriptedLiveServer = Awaited<ReturnType<typeof startScriptedLiveServer>>;

/**
 * Starts a server for tests of clients that takes one turn for each upgrade, and repeats the last
 * one.
 */
export async function startScriptedLiveServer(turns: readonly Turn[]) {
  const requests: IncomingMessage[] = [];
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'cloudevents.json' });
  server.on('upgrade', (request, connection, head) => {
    const turn = turns[Math.min(requests.push(request), turns.length) - 1];
    if (typeof turn === 'function') {
      sockets.handleUpgrade(request, connection, head, turn);
      return;
    }
    const headers = Object.entries(turn?.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
    connection.end(`HTTP/1.1 ${turn?.status} Refused\r\n${headers.join('')}Connection: close\r\nContent-Length: 0\r\n\r\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/realtime`,
    requests,
    /** Sockets that are open. */
    open: sockets.clients,
    async stop() {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const frame = (type: string, data: object, more: object = {}) =>
  JSON.stringify({
    specversion: '1.0',
    id: crypto.randomUUID(),
    source: '/applications/019a9e3c-52f0-7c41-b0f3-6d1a8e5f2b90',
    type,
    time: '2026-05-12T09:00:00.000Z',
    datacontenttype: 'application/json',
    epoch: 'e1',
    ...more,
    data,
  });

export function readyText(lastSequence: number, resumed: boolean, name = 'Difference Engine'): string {
  const state = { applicationId: '019a9e3c-52f0-7c41-b0f3-6d1a8e5f2b90', name, status: 'online', version: '1.0' };
  return frame('latchkey.connection.ready', { ...state, lastSequence: String(lastSequence), resumed });
}

/** An event of a sequence. */
export function eventText(sequence: number): string {
  const data = { version: `1.${sequence}`, previousVersion: `1.${sequence - 1}` };
  return frame('latchkey.application.version_changed', data, { sequence: String(sequence) });
}
