import { createServer } from 'node:net';
import { findFreePort } from '@latchkey/embedded/free-port';
import { StartError } from '@latchkey/embedded/start-error';

/** Where the REST interface is to listen. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Makes sure, before anything slow, that the address can be listened on; port 0 becomes a free one.
 *
 * @throws {StartError} when it can't.
 */
export async function claimAddress({ host, port }: ListenAddress): Promise<ListenAddress> {
  if (port === 0) return { host, port: await findFreePort() };
  await tryListen({ host, port });
  return { host, port };
}

/** The address as this machine reaches it, for an address that may mean all of them. */
export function localUrl({ host, port }: ListenAddress): string {
  const everywhere = host === '0.0.0.0' || host === '::';
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** The sentence for an address that can't be listened on, or nothing for another error. */
export function explainListenError(err: unknown, { host, port }: ListenAddress): string | undefined {
  const { code } = err as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `Port ${port} is taken by another process: stop that, or set PORT to another port.`;
  if (code === 'EACCES') return `Port ${port} may not be used by this user: set PORT to one above 1023.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `This machine has no address ${host}: set HOST to one of its own.`;
  return undefined;
}

function tryListen(address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (err) => {
      const sentence = explainListenError(err, address);
      reject(sentence === undefined ? err : new StartError(sentence, { cause: err }));
    });
    probe.listen(address, () => probe.close(() => resolve()));
  });
}
