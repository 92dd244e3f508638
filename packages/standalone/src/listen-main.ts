import { type ConnectionState, LatchkeyError, type LiveEvent, listen } from '@latchkey/client';
import { WebSocket } from 'ws';
import { onExitSignal } from './exit-signals.ts';
import { describeEvent, describeState, LISTEN_HELP, type ListenCommand, printable, readListenArguments } from './listen.ts';

// The reader of our output may go away, as `head` does.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(0));

const command = readCommand();
if (command?.help) process.stdout.write(LISTEN_HELP);
else if (command) await run(command);

function readCommand(): ListenCommand | undefined {
  try {
    return readListenArguments(process.argv.slice(2), process.env);
  } catch (err) {
    process.stderr.write(`${(err as Error).message.split('\n')[0]}\n\n${LISTEN_HELP}`);
    process.exitCode = 2;
    return undefined;
  }
}

async function run({ json, ...options }: ListenCommand & { help: false }): Promise<void> {
  const stop = new AbortController();
  onExitSignal(
    () => stop.abort(),
    () => process.exit(130),
  );
  let { lastEventId } = options;
  const print = (event: LiveEvent) => {
    lastEventId = event.sequence ?? lastEventId;
    if (json) process.stdout.write(`${JSON.stringify(event)}\n`);
    else if (event.sequence !== undefined) process.stdout.write(`${describeEvent(event)}\n`);
  };
  const onState = (state: ConnectionState) => {
    const line = describeState(state, lastEventId);
    if (line !== undefined) process.stderr.write(`${line}\n`);
    if (state.state !== 'connected') return;
    // The listener reports the others as events.
    if (state.ready.data.resumed) print(state.ready);
    else lastEventId = state.ready.data.lastSequence;
  };
  try {
    for await (const event of listen({ ...options, WebSocket, onState, signal: stop.signal })) print(event);
    if (!stop.signal.aborted) process.stderr.write('The application was deleted.\n');
  } catch (err) {
    if (!(err instanceof LatchkeyError)) throw err;
    process.stderr.write(`${printable(err.message)}\n`);
    process.exitCode = 1;
  }
}
