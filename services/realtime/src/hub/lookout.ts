import type { Hubs } from './hubs.ts';

/** Looks at all hubs from time to time, so that clients hear of what got lost on its way, or while Redis is away. */
export interface Lookout {
  start(): void;
  /** Resolves when the look under way has ended, which takes a few seconds at most. */
  stop(): Promise<void>;
}

/** @param intervalMs wait between the end of a look and the next */
export function createLookout(hubs: Pick<Hubs, 'lookAtAll'>, intervalMs: number): Lookout {
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> = Promise.resolve();
  let isStopped = false;
  const wait = () => {
    timer = setTimeout(() => {
      looking = hubs.lookAtAll().then(() => {
        if (!isStopped) wait();
      });
    }, intervalMs);
  };
  return {
    start: wait,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await looking;
    },
  };
}
