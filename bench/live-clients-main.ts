import { now } from './clock.ts';
import { LiveClient } from './live-client.ts';
import type { Answer, Command } from './live-clients.ts';

/** Holds live connections as it is told, in a process of its own. */

/** A refused client tries again after so long, and so often. */
const RETRY_MS = 50;
const RETRIES_MAX = 20_000;

const clients = new Set<LiveClient>();
let sample: string | undefined;
let isSampling = false;
let messages = 0;
let retries = 0;
let target = Number.POSITIVE_INFINITY;
let reach: ((at: number) => void) | undefined;

function open(port: number, request: string): void {
  const client = new LiveClient(port, request, {
    onMessage(text) {
      messages += 1;
      if (isSampling) sample = text.toString();
      if (messages === target) reach?.(now());
    },
    onEnd(status) {
      if (!clients.delete(client)) return;
      if (status === undefined) return;
      retries += 1;
      if (retries > RETRIES_MAX) throw new Error(`Refused with ${status}`);
      setTimeout(open, RETRY_MS, port, request);
    },
  });
  clients.add(client);
}

function cut(): void {
  const all = [...clients];
  clients.clear();
  for (const client of all) client.cut();
}

/** @returns when the number of messages from now on has come */
function expect(count: number): Promise<number> {
  target = messages + count;
  return new Promise((resolve) => {
    reach = resolve;
  });
}

process.on('message', async ({ id, ...command }: Command & { id: number }) => {
  const answer = (body: Answer) => process.send?.({ id, ...body });
  if (command.do === 'expect') {
    isSampling = command.count === 1;
    const reached = expect(command.count);
    answer({ at: now() });
    const at = await reached;
    answer({ at, sample, cpuSeconds: cpuSeconds(), retries });
  } else if (command.do === 'open') {
    const { port, requests, count } = command;
    retries = 0;
    for (let i = 0; i < count; i += 1) open(port, requests[i % requests.length] as string);
    answer({ at: now() });
  } else if (command.do === 'cut') {
    cut();
    answer({ at: now() });
  } else {
    answer({ at: now(), cpuSeconds: cpuSeconds(), retries });
  }
});
process.on('disconnect', () => process.exit());

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
