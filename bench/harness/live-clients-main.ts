// Holds live connections on command, in a separate process.
import { LiveClient } from './live-client.ts';
import { type Command, now } from './live-clients.ts';

const RETRY_MS = 50;
const RETRIES_MAX = 20_000;

let sample: string | undefined;
let isSampling = false;
let messages = 0;
let retries = 0;
let target = Number.POSITIVE_INFINITY;
let onTarget: (at: number) => void = () => {};

function open(port: number, request: string): void {
  new LiveClient(port, request, {
    onMessage(text) {
      messages += 1;
      if (isSampling) sample = text.toString();
      if (messages === target) onTarget(now());
    },
    onRejected(status) {
      retries += 1;
      if (retries > RETRIES_MAX) throw new Error(`Rejected with ${status}`);
      setTimeout(open, RETRY_MS, port, request);
    },
  });
}

process.on('message', ({ id, ...command }: Command & { id: number }) => {
  const reply = (part: 'begun' | 'ended', at = now()) => process.send?.({ key: `${id} ${part}`, at, sample });
  if (command.do === 'expect') {
    isSampling = command.count === 1;
    target = messages + command.count;
    onTarget = (at) => reply('ended', at);
  } else {
    retries = 0;
    for (let i = 0; i < command.count; i += 1) open(command.port, command.request);
  }
  reply('begun');
});
process.on('disconnect', () => process.exit());
