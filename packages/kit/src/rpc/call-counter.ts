import type { BoundMethod } from './bound-method.ts';

/** Knows how many unary calls are under way. */
export interface CallCounter {
  /** The same methods, counted. */
  readonly methods: ReadonlyMap<string, BoundMethod>;
  /** Resolves once no call is under way. */
  idle(): Promise<void>;
}

/** Counts the calls of bound methods, so that a server can stop when the last has ended. */
export function countCalls(methods: ReadonlyMap<string, BoundMethod>): CallCounter {
  let underWay = 0;
  let onIdle: (() => void) | undefined;
  const count = (bound: BoundMethod): BoundMethod => ({
    ...bound,
    async invoke(input, context, requestId) {
      underWay += 1;
      try {
        return await bound.invoke(input, context, requestId);
      } finally {
        underWay -= 1;
        if (underWay === 0) onIdle?.();
      }
    },
  });
  return {
    methods: new Map([...methods].map(([path, bound]) => [path, count(bound)])),
    idle: () =>
      new Promise((resolve) => {
        if (underWay === 0) resolve();
        else onIdle = resolve;
      }),
  };
}
