import { createServer } from 'node:net';
import { findFreePort } from '@latchkey/embedded/free-port';
import { StartError } from '@latchkey/embedded/start-error';

/** Where clients are to be listened to. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The settings that decide. */
  readonly settings: { readonly host: string; readonly port: string };
}

/**
 * Makes sure, before anything slow, that the address can be listened on; port 0 becomes a free one.
 *
 * @throws {StartError} when it can't.
 */
export async function claimAddress(address: ListenAddress): Promise<ListenAddress> {
  if (address.port === 0) return { ...address, port: await findFreePort() };
  await tryListen(address);
  return address;
}

/** The address as this machine reaches it, for an address that may mean all of them. */
export function localUrl(address: ListenAddress): string {
  return `http://${hostOf(address, '127.0.0.1')}`;
}

/** Where clients of this machine open live connections. */
export function realtimeUrl(address: ListenAddress): string {
  return `ws://${hostOf(address, 'localhost')}/api/v1/realtime`;
}

/** @param ownName what the machine calls itself, for an address that means all of its own */
function hostOf({ host, port }: ListenAddress, ownName: string): string {
  const everywhere = host === '0.0.0.0' || host === '::';
  return `${everywhere ? ownName : host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The sentence for an address that can't be listened on, or nothing for another error. */
export function explainListenError(err: unknown, { host, port, settings }: ListenAddress): string | undefined {
  const { code } = err as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE')
    return `Port ${port} is taken by another process: stop that, or set ${settings.port} to another port.`;
  if (code === 'EACCES') return `Port ${port} may not be used by this user: set ${settings.port} to one above 1023.`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `This machine has no address ${host}: set ${settings.host} to one of its own.`;
  }
  return undefined;
}

function tryListen(address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (err) => {
      const sentence = explainListenError(err, address);
      reject(sentence === undefined ? err : new StartError(sentence, { cause: err }));
    });
    probe.listen({ host: address.host, port: address.port }, () => probe.close(() => resolve()));
  });
}
