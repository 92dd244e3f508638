import { parseArgs } from 'node:util';
import type { ConnectionState, LiveEvent } from '@latchkey/client';

const urlAt = (port: string) => `ws://localhost:${port}/api/v1/realtime`;
/** The default of `npm start`. */
export const DEFAULT_URL = urlAt('8081');
const PROTOCOLS = ['ws:', 'wss:', 'http:', 'https:'];

export const LISTEN_HELP = `Usage: LATCHKEY_SOCKET_KEY=<socketKey> npm run listen -- [--url <url>] [--from <sequence>] [--json]

Prints the live events of an application as they arrive, and reconnects. Ctrl-C ends it.

  <socketKey>         lk_sock_…, as get-applications answers it. It may be given as an argument instead, which other
                      users of the machine see in the list of processes. The shell's history stores either,
                      unless it is read with: read -rs LATCHKEY_SOCKET_KEY && export LATCHKEY_SOCKET_KEY
  --url <url>         of the endpoint (${DEFAULT_URL}, or with the port of REALTIME_PORT where
                      that is set)
  --from <sequence>   first print what came after this event, as far as it is still stored
  --json              print the frames as they come, one a line, for other programs; npm run -s hides npm's lines
  --help              show this

Events go to standard output, all else to standard error. The exit code is 0 after Ctrl-C and after the application's deletion, 1 when the key
or the URL is refused and after the key's rotation, 2 for wrong arguments.
`;

export type ListenCommand = ReturnType<typeof readListenArguments>;

export function readListenArguments(args: readonly string[], env: NodeJS.ProcessEnv) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      url: { type: 'string' },
      from: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const { help, from, json } = values;
  if (help) return { help };
  if (positionals.length > 1) throw new Error('There is more than one socket key.');
  const socketKey = positionals[0] ?? env.LATCHKEY_SOCKET_KEY?.trim();
  if (!socketKey) throw new Error('There is no socket key.');
  // It becomes part of a header, where a line break would be an error of the HTTP client.
  if (!/^[\x21-\x7e]+$/.test(socketKey)) throw new Error('The socket key has characters that no key has.');
  const url = values.url ?? (env.REALTIME_PORT ? urlAt(env.REALTIME_PORT) : DEFAULT_URL);
  if (values.url === undefined && !URL.canParse(url)) throw new Error('REALTIME_PORT is no port: set it right, or give --url.');
  if (!PROTOCOLS.includes(URL.parse(url)?.protocol ?? '')) throw new Error('--url must be a ws:// or wss:// URL.');
  if (from !== undefined && !/^\d{1,15}$/.test(from))
    throw new Error('--from must be the sequence of an event, such as 0 or 17.');
  return { help, socketKey, url, json, ...(from !== undefined && { lastEventId: from }) };
}

export function describeEvent({ time, sequence, type, data }: LiveEvent): string {
  return printable(`${time}  ${sequence === undefined ? '-' : `#${sequence}`}  ${type}  ${JSON.stringify(data)}`);
}

/** @param lastEventId `sequence` of the last known event */
export function describeState(state: ConnectionState, lastEventId: string | undefined): string | undefined {
  if (state.state === 'connecting') return undefined;
  if (state.state === 'waiting') {
    return printable(`Not connected: ${state.reason}. Trying again in ${(state.delayMs / 1_000).toFixed(1)} s.`);
  }
  const { name, status, version, lastSequence, resumed } = state.ready.data;
  const start = resumed ? 'Resumed: nothing is missed.' : describeStart(lastSequence, lastEventId);
  return printable(`Connected to ${name}: ${status}, version ${version}. ${start}`);
}

function describeStart(lastSequence: string, lastEventId: string | undefined): string {
  if (lastEventId === undefined) return `Begins after #${lastSequence}.`;
  // The number was mistyped, or the events were lost with a restore.
  if (Number(lastEventId) > Number(lastSequence)) return `There is no #${lastEventId}: begins after #${lastSequence}.`;
  return `Missed what is no longer held, and goes on after #${lastSequence}.`;
}

/** Escapes control characters, which a terminal would interpret. */
export function printable(line: string): string {
  return line.replace(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
