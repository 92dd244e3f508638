import type { components } from '../generated/openapi.ts';
import type { CallOptions } from '../options.ts';

interface CloudEvent<Type extends string, Data> {
  readonly specversion: '1.0';
  readonly id: string;
  /** `/applications/<id>`. */
  readonly source: string;
  readonly type: Type;
  readonly time: string;
  readonly datacontenttype: string;
  /** Epoch of the event log: it changes when the log was set back, as by a restore. */
  readonly epoch: string;
  /** Number of the event in its application, in decimal. `latchkey.connection.ready` has none. */
  readonly sequence?: string;
  readonly data: Data;
}

type LiveEventData = components['schemas']['LiveEventData'];

/** The state of the application. It replaces the events that may have been missed before it. */
export type ReadyEvent = CloudEvent<'latchkey.connection.ready', Readonly<LiveEventData['latchkey.connection.ready']>>;

/** A CloudEvent of the service. Later services may add types and properties: ignore those. */
export type LiveEvent = { [Type in keyof LiveEventData]: CloudEvent<Type, Readonly<LiveEventData[Type]>> }[keyof LiveEventData];

/** Events that were pulled. */
export interface EventPage {
  readonly events: LiveEvent[];
  /** Position after them, `<epoch>:<sequence>`. */
  readonly next: string;
  /** True if events before them are no longer stored, or the log was set back: read the settings. */
  readonly gap: boolean;
}

/** State of the listener. `failures` counts the last connections that failed or ended early. */
export type ConnectionState =
  | { readonly state: 'connecting' }
  | { readonly state: 'connected'; readonly ready: ReadyEvent }
  | {
      readonly state: 'waiting';
      /** Milliseconds until the next attempt. */
      readonly delayMs: number;
      readonly reason: string;
      /** Close code; 1006 without one. */
      readonly code: number;
      /** HTTP status of a rejected handshake, if known. */
      readonly status: number | undefined;
      readonly failures: number;
    };

export interface EventsOptions extends CallOptions {
  /** `lk_sock_…` of the application. */
  readonly socketKey: string;
  /** The last known event, as `<epoch>:<sequence>` or its `sequence`: later ones follow. */
  readonly lastEventId?: string | undefined;
  /** Called with every change of the connection. */
  readonly onState?: ((state: ConnectionState) => void) | undefined;
  /**
   * Used instead of the global `WebSocket`. With the class of the package `ws`, the client also
   * notices rejected keys and dead connections, which the global one hides. Node.js 20 has no
   * global one.
   */
  readonly WebSocket?: WebSocketClass | undefined;
  /** URL of live events, instead of that of the client. */
  readonly url?: string | undefined;
}

/** A class as browsers have it, or that of `ws`. */
export type WebSocketClass = new (url: string, protocols: string[], options?: object) => object;

export interface ListenOptions extends EventsOptions {
  /** URL of live events, such as `wss://live.example.com/api/v1/realtime`. */
  readonly url: string;
}
