import { findFreePort, findListenError } from '@latchkey/embedded/process/free-port';
import { StartError } from '@latchkey/embedded/process/start-error';
import type { LauncherSettings } from './settings.ts';

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly portSetting: string;
}

/**
 * Makes sure, before anything slow, that both addresses can be listened on. Port 0 becomes a free
 * one.
 *
 * @throws {StartError} with a line for each problem
 */
export async function claimAddresses(settings: Pick<LauncherSettings, 'HOST' | 'PORT' | 'REALTIME_PORT'>) {
  const { HOST: host, PORT, REALTIME_PORT } = settings;
  const problems = new Map<string, Error>();
  const claim = async (address: ListenAddress): Promise<ListenAddress> => {
    if (address.port === 0) return { ...address, port: await findFreePort() };
    const err = await findListenError({ host, port: address.port });
    if (err) problems.set(explainListenError(err, address) ?? err.message, err);
    return address;
  };
  const address = await claim({ host, port: PORT, portSetting: 'PORT' });
  const realtimeAddress = await claim({ host, port: REALTIME_PORT, portSetting: 'REALTIME_PORT' });
  const [cause] = problems.values();
  if (cause) throw new StartError([...problems.keys()].join('\n'), { cause });
  return { address, realtimeAddress };
}

export function localUrl(address: ListenAddress): string {
  return `http://${hostOf(address, '127.0.0.1')}`;
}

export function realtimeUrl(address: Pick<ListenAddress, 'host' | 'port'>): string {
  return `ws://${hostOf(address, 'localhost')}/api/v1/realtime`;
}

/** @param ownName name of this machine, for an address that means all of its addresses or itself */
function hostOf({ host, port }: Pick<ListenAddress, 'host' | 'port'>, ownName: string): string {
  if (['0.0.0.0', '::', '127.0.0.1'].includes(host)) return `${ownName}:${port}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function explainListenError(err: unknown, { host, port, portSetting }: ListenAddress): string | undefined {
  switch ((err as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken by another process: stop that, or set ${portSetting} to another port.`;
    case 'EACCES':
      return `Port ${port} may not be used by this user: set ${portSetting} to one above 1023.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `This machine has no address ${host}: set HOST to one that it has.`;
    default:
      return undefined;
  }
}
