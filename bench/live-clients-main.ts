import { LiveClient } from './live-client.ts';
import { type Answer, type Command, now } from './live-clients.ts';

/** Holds live connections on command, in a process of its own. */

/** A refused client tries again. */
const RETRY_MS = 50;
const RETRIES_MAX = 20_000;

const clients = new Set<LiveClient>();
let sample: string | undefined;
let isSampling = false;
let messages = 0;
let retries = 0;
let target = Number.POSITIVE_INFINITY;
let onTarget: (at: number) => void = () => {};

function open(port: number, request: string): void {
  const client = new LiveClient(port, request, {
    onMessage(text) {
      messages += 1;
      if (isSampling) sample = text.toString();
      if (messages === target) onTarget(now());
    },
    onEnd(status) {
      if (!clients.delete(client) || status === undefined) return;
      retries += 1;
      if (retries > RETRIES_MAX) throw new Error(`Refused with ${status}`);
      setTimeout(open, RETRY_MS, port, request);
    },
  });
  clients.add(client);
}

process.on('message', ({ id, ...command }: Command & { id: number }) => {
  const answer = (part: 'begun' | 'ended', at = now()) => {
    const { user, system } = process.cpuUsage();
    const body: Answer = { at, sample, cpuSeconds: (user + system) / 1e6, retries };
    process.send?.({ key: `${id} ${part}`, ...body });
  };
  if (command.do === 'expect') {
    isSampling = command.count === 1;
    target = messages + command.count;
    onTarget = (at) => answer('ended', at);
  } else if (command.do === 'open') {
    const { port, requests, count } = command;
    retries = 0;
    for (let i = 0; i < count; i += 1) open(port, requests[i % requests.length] as string);
  } else {
    const all = [...clients];
    clients.clear();
    for (const client of all) client.cut();
  }
  answer('begun');
});
process.on('disconnect', () => process.exit());
