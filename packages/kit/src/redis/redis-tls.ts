import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ReplyError } from 'ioredis';
import { explainTlsFailure } from '../tls/tls-failure.ts';
import { namedServers } from './redis-url.ts';

const PROBE_MS_MAX = 2_000;
const TRUST = 'set NODE_EXTRA_CA_CERTS to its PEM file';

/**
 * The reason why a Redis that failed can't be used with TLS, or without it, and what to do;
 * undefined for other reasons. The servers of the URL are asked without its password.
 *
 * @param setting name of the setting that holds the URL
 * @param failure first error of the connection
 */
export async function findTlsFault(url: string, setting: string, failure: unknown): Promise<string | undefined> {
  if (failure instanceof ReplyError) return undefined;
  const faults = await Promise.all(namedServers(url).map((server) => explainFault(server, setting)));
  return faults.find((fault) => fault !== undefined) ?? explainTlsFailure(failure, setting, TRUST);
}

/**
 * Asks the server: the error of a Sentinel, or where Redis wants a client certificate, is that the
 * connection closed.
 */
async function explainFault(
  { hasTls, ...address }: ReturnType<typeof namedServers>[number],
  setting: string,
): Promise<string | undefined> {
  const reply = await ping(hasTls ? connect(address) : connectTls({ ...address, rejectUnauthorized: false }));
  const isReply = /^[+-]/.test(`${reply}`);
  if (!hasTls) return isReply ? `the server has TLS on this port: write rediss:// instead of redis:// in ${setting}` : undefined;
  return isReply
    ? `the server has no TLS on this port: use a port with TLS, or write redis:// instead of rediss:// in ${setting}`
    : explainTlsFailure(await ping(connectTls(address)), setting, TRUST);
}

/** The first bytes of the response to a ping, or the error. Closes the connection. */
async function ping(socket: Socket): Promise<unknown> {
  socket.on('error', () => undefined);
  socket.write('PING\r\n');
  try {
    const [reply] = await once(socket, 'data', { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    return reply;
  } catch (err) {
    return err;
  } finally {
    socket.destroy();
  }
}
