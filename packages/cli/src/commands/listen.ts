import { type ConnectionState, LatchkeyError, type LiveEvent } from '@latchkey/client';
import { InvalidArgumentError } from 'commander';
import { WebSocket } from 'ws';
import { findApplication } from '../lookup/resolve.ts';
import { printable, toJson } from '../output/text.ts';
import type { CliCommand } from '../program/command.ts';
import { type Context, DEFAULT_URL, isRealtimeUrl } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { stopSignal } from '../program/signals.ts';

interface ListenOptions {
  readonly url?: string;
  readonly from?: string;
}

export function addListen(program: CliCommand): void {
  program
    .command('listen')
    .summary('Print live events of an application')
    .description('Print the live events of an application as they come, and reconnect; Ctrl-C ends it')
    .argument('[app]', 'name or id of the application; without it LATCHKEY_SOCKET_KEY has its socket key')
    .option('--url <url>', 'URL of live events (LATCHKEY_REALTIME_URL)', readUrl)
    .option('--from <event>', 'first print what came after this event: its sequence, or epoch:sequence', readEventId)
    .run(listen)
    .examples(
      ['latchkey listen "Difference Engine" --from 0', 'From the first event that is still stored'],
      ['latchkey listen "Difference Engine" --json | jq .type', 'Process each event'],
    );
}

function readUrl(text: string): string {
  if (!isRealtimeUrl(text)) throw new InvalidArgumentError('It must be a ws:// or wss:// URL.');
  return text;
}

function readEventId(text: string): string {
  if (!/^([^:\s]{1,64}:)?\d{1,15}$/.test(text))
    throw new InvalidArgumentError('It must be a sequence such as 0 or 17, or epoch:sequence.');
  return text;
}

async function listen(context: Context, app: string | undefined, { url, from }: ListenOptions): Promise<void> {
  const { socketKey, client } = await findSocketKey(context, app);
  let lastEventId = from?.replace(/^.*:/, '');
  const onState = (state: ConnectionState) => {
    const line = describeState(state, lastEventId);
    if (line !== undefined) context.note(line);
    // The client reports the others as events.
    if (state.state === 'connected' && state.ready.data.resumed) printEvent(context, state.ready);
  };
  const signal = stopSignal();
  try {
    const options = { socketKey, onState, signal, WebSocket, lastEventId: from, ...(url !== undefined && { url }) };
    for await (const event of client.events(options)) {
      lastEventId = event.type === 'latchkey.connection.ready' ? event.data.lastSequence : (event.sequence ?? lastEventId);
      if (event.type === 'latchkey.connection.key_expiring')
        context.note(`The socket key was rotated, and ends at ${event.data.expiresAt}.`);
      printEvent(context, event);
    }
  } catch (err) {
    if (!(err instanceof LatchkeyError) || err.code !== 'socket_key_rotated') throw err;
    throw new CliError('failed', 'The socket key was rotated. Start it again with the new one.');
  }
  if (!signal.aborted) context.note('The application was deleted.');
}

async function findSocketKey(context: Context, app: string | undefined) {
  if (app?.startsWith('lk_')) {
    throw new CliError(
      'usage',
      'Keys among the arguments are visible to others. Name the application, or set LATCHKEY_SOCKET_KEY.',
    );
  }
  if (app !== undefined) {
    const client = await context.client();
    const application = await findApplication(client, app);
    return { client, socketKey: application.applicationApiKeys.socketKey };
  }
  const socketKey = context.io.env.LATCHKEY_SOCKET_KEY?.trim();
  if (!socketKey) throw new CliError('usage', 'Which application? Name it, or set LATCHKEY_SOCKET_KEY to its socket key.');
  const url = context.io.env.LATCHKEY_URL || (await context.readProfile())?.url || DEFAULT_URL;
  return { client: context.createClient({ url }), socketKey };
}

export function printEvent({ io: { stdout }, options: { json } }: Context, event: LiveEvent): void {
  if (json) stdout.write(`${toJson(event)}\n`);
  // Its state was reported as a note.
  else if (event.sequence !== undefined) stdout.write(`${describeEvent(event)}\n`);
}

function describeEvent({ time, sequence, type, data }: LiveEvent): string {
  return printable(`${time}  #${sequence}  ${type}  ${JSON.stringify(data)}`);
}

/** @param lastEventId `sequence` of the last known event */
export function describeState(state: ConnectionState, lastEventId: string | undefined): string | undefined {
  if (state.state === 'connecting') return undefined;
  if (state.state === 'waiting')
    return `Not connected: ${state.reason}. Trying again in ${(state.delayMs / 1_000).toFixed(1)} s.`;
  const { name, status, version, lastSequence, resumed } = state.ready.data;
  const start = resumed ? 'Resumed: nothing is missed.' : describeStart(lastSequence, lastEventId);
  return `Connected to ${name}: ${status}, version ${version}. ${start}`;
}

function describeStart(lastSequence: string, lastEventId: string | undefined): string {
  if (lastEventId === undefined) return `Begins after #${lastSequence}.`;
  // The number was mistyped, or the events were lost with a restore.
  if (Number(lastEventId) > Number(lastSequence)) return `There is no #${lastEventId}: begins after #${lastSequence}.`;
  return `Missed what is no longer stored, and goes on after #${lastSequence}.`;
}
