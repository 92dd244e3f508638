import { connect, createServer, type Socket } from 'node:net';
import { findFreePort } from '@latchkey/embedded/process/free-port';

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

/** Puts a proxy that can fail in several ways before the server that a URL names. */
export async function startTcpProxy(targetUrl: string) {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let frozen = false;
  let lost: string | undefined;
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
    if (frozen) socket.pause();
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    track(client);
    track(upstream);
    // No pipe, as it would resume a paused stream.
    client.prependListener('data', (chunk) => {
      if (lost === undefined || !chunk.includes(lost)) return;
      lost = undefined;
      upstream.removeAllListeners('data').once('data', () => client.resetAndDestroy());
    });
    relay(client, upstream);
    relay(upstream, client);
  });
  const open = (port: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  const cut = async () => {
    for (const socket of sockets) socket.resetAndDestroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  const port = await findFreePort();
  await open(port);
  const url = new URL(targetUrl);
  url.host = `127.0.0.1:${port}`;
  const pauseAll = () => {
    for (const socket of sockets) socket.pause();
  };
  return {
    url: url.href,
    /** Accepts connections and bytes and passes none on, like a server after SIGSTOP. */
    freeze() {
      frozen = true;
      pauseAll();
    },
    /** Passes no byte on over the open connections, and all over new ones. */
    abandon: pauseAll,
    /** Cuts every connection and rejects new ones, like a server that is gone. */
    cut,
    /** Cuts the connection of the next client that sends the text, before the response. */
    loseAnswerTo(text: string) {
      lost = text;
    },
    /** Passes everything on again, first what is buffered. */
    async restore() {
      frozen = false;
      for (const socket of sockets) socket.resume();
      if (!server.listening) await open(port);
    },
    close: cut,
  };
}

function relay(from: Socket, to: Socket): void {
  from.on('data', (chunk) => {
    if (!to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('close', () => to.destroy());
}
