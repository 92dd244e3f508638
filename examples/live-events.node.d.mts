/**
 * A CloudEvent from the service: docs/asyncapi.json describes each type. There may be further
 * types and properties.
 */
export interface LiveEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly time: string;
  readonly datacontenttype: string;
  /**
   * Place among the events of the application, in decimal. `latchkey.connection.ready` has none.
   */
  readonly sequence?: string;
  // biome-ignore lint/suspicious/noExplicitAny: each type has data of its own.
  readonly data: any;
}

/** What `listen` is doing. */
export type State =
  | { readonly state: 'connecting' }
  /** `ready.data.resumed` says whether nothing was missed. */
  | { readonly state: 'connected'; readonly ready: LiveEvent }
  /** The connection ended, or was not made; the next try is after `delayMs`. */
  | {
      readonly state: 'waiting';
      readonly delayMs: number;
      readonly reason: string;
      /** Close code; 1006 where there was none. */
      readonly code: number;
      /** HTTP status of a refusal, where it can be seen. */
      readonly status?: number | undefined;
    }
  /**
   * The endpoint refuses for good, as with a wrong key or URL: `reason` is a sentence. The end
   * follows.
   */
  | { readonly state: 'refused'; readonly reason: string; readonly status?: number | undefined };

export interface ListenOptions {
  /** Such as `ws://localhost:8081/api/v1/realtime`. */
  readonly url: string;
  /** `lk_sock_…`, of the application to listen to. */
  readonly socketKey: string;
  /** What it throws ends the listening. */
  readonly onEvent: (event: LiveEvent) => void;
  readonly onState?: (state: State) => void;
  /** Ends the listening. */
  readonly signal?: AbortSignal;
  /** `sequence` of the last event that is known, to begin after it. */
  readonly lastEventId?: string;
}

/** Chance and time, so that tests need not wait. */
export interface Clock {
  /** From 0 to 1. */
  readonly random?: () => number;
  readonly wait?: (delayMs: number, value: undefined, options: { signal?: AbortSignal | undefined }) => Promise<void>;
  /** In milliseconds. */
  readonly now?: () => number;
  readonly deadAfterMs?: number;
}

/**
 * Why it has ended: the signal, the application's deletion, the key's rotation, or a key or URL
 * that opens nothing.
 */
export type End = 'aborted' | 'deleted' | 'rotated' | 'refused';

export function listen(options: ListenOptions, clock?: Clock): Promise<End>;
