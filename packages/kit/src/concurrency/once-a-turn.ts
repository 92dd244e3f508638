import DataLoader from 'dataloader';

/**
 * Returns a function that handles an item together with all others of the same turn of the event
 * loop, up to `max` of them. They succeed and fail together.
 */
export function onceATurn<T>(max: number, handle: (items: readonly T[]) => Promise<void>): (item: T) => Promise<void> {
  const loader = new DataLoader<T, undefined>(
    async (items) => {
      await handle(items);
      return items.map(() => undefined);
    },
    { cache: false, maxBatchSize: max, batchScheduleFn: setImmediate },
  );
  return (item) => loader.load(item);
}
