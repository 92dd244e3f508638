import { type End, type LiveEvent, listen, type State } from '@latchkey/examples/live-events.node.mjs';
import { onExitSignal } from './exit-signals.ts';
import { describeEvent, describeState, LISTEN_HELP, type ListenCommand, readListenArguments } from './listen.ts';

const ENDS: Record<End, { readonly code: number; readonly sentence?: string }> = {
  aborted: { code: 0 },
  deleted: { code: 0, sentence: 'The application was deleted.' },
  rotated: { code: 1, sentence: 'The socket key was rotated: take the new one from get-applications.' },
  // The state gives the reason.
  refused: { code: 1 },
};

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
  const onState = (state: State) => {
    const line = describeState(state, lastEventId);
    if (line !== undefined) process.stderr.write(`${line}\n`);
    if (state.state !== 'connected') return;
    // The listener reports the others as events.
    if (state.ready.data.resumed) print(state.ready);
    else lastEventId = state.ready.data.lastSequence;
  };
  const { code, sentence } = ENDS[await listen({ ...options, onEvent: print, onState, signal: stop.signal })];
  if (sentence !== undefined) process.stderr.write(`${sentence}\n`);
  process.exitCode = code;
}
