/** Path of the WebSocket. */
export const REALTIME_PATH = '/api/v1/realtime';

/** Longest wait of `GET events` for an event, in seconds. */
export const EVENT_WAIT_SECONDS_MAX = 25;

export const LIVE_EVENT_TYPE_PREFIX = 'latchkey.application.';

/** A CloudEvent of an application; one of the event log has a `sequence`. */
export interface LiveCloudEvent {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  /** Changes when the event log may have lost events that clients received. */
  readonly epoch: string;
  readonly sequence?: string;
  readonly data: object;
}

/** The JSON of a CloudEvent, as sockets and `GET events` carry it. */
export function toCloudEvent(applicationId: string, { id, type, time, data, ...numbers }: LiveCloudEvent) {
  const facts = { id, source: `/applications/${applicationId}`, type, time, datacontenttype: 'application/json' };
  return { specversion: '1.0', ...facts, ...numbers, data };
}
