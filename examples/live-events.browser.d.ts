import type { End, ListenOptions as NodeListenOptions, State as NodeState } from './live-events.node.d.mts';

export type { End, LiveEvent } from './live-events.node.d.mts';

/**
 * What `listen` is doing. A browser sees no HTTP status; how often in a row it has failed stands
 * in for that.
 */
export type State = Exclude<NodeState, { state: 'waiting' | 'refused' }> | Waiting;

/** The connection ended, or was not made; the next try is after `delayMs`. */
export interface Waiting {
  readonly state: 'waiting';
  readonly delayMs: number;
  readonly reason: string;
  /** Close code; 1006 where there was none. */
  readonly code: number;
  /** Connections in a row, this one included, that were not made or did not stand for long. */
  readonly failures: number;
}

export interface ListenOptions extends Omit<NodeListenOptions, 'onState'> {
  readonly onState?: (state: State) => void;
}

/** Chance and time, so that tests need not wait. */
export interface Clock {
  /** From 0 to 1. */
  readonly random?: () => number;
  readonly wait?: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>;
  /** In milliseconds. */
  readonly now?: () => number;
}

/** Never ends with `refused`: a browser can't tell. */
export function listen(options: ListenOptions, clock?: Clock): Promise<Exclude<End, 'refused'>>;
