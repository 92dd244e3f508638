import { once } from 'node:events';
import { connect } from 'node:net';
import { onTestFinished } from 'vitest';

export type RawClient = Awaited<ReturnType<typeof openRawClient>>;

const CHUNK = Buffer.alloc(256 * 1024, 'x');

/**
 * Opens a TCP connection to a port of this machine, which the test drives by hand until it ends.
 */
export async function openRawClient(port: number) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  let received = '';
  let failure: string | undefined;
  /** End of the connection: an error's code, or `end`. */
  const ended = new Promise<string>((resolve) => {
    socket.on('error', (err: NodeJS.ErrnoException) => {
      failure = err.code ?? err.message;
    });
    socket.once('close', () => resolve(failure ?? 'end'));
  });
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  await once(socket, 'connect');
  /** Sends this many bytes, until the connection is closed. */
  const pour = async (byteSize: number) => {
    for (let left = byteSize; left > 0 && socket.writable; left -= CHUNK.byteLength) {
      const taken = socket.write(CHUNK.subarray(0, left));
      if (!taken) await Promise.race([once(socket, 'drain').catch(() => undefined), ended]);
    }
  };
  return { socket, received: () => received, pour, ended };
}

/** All that a server sends for these bytes until it closes the connection. */
export async function exchangeBytes(port: number, bytes: string): Promise<string> {
  const { socket, received, ended } = await openRawClient(port);
  socket.once('end', () => socket.end()).write(bytes, 'latin1');
  await ended;
  return received();
}
