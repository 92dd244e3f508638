import { VERSION } from './lengths.ts';

interface LiveEvent {
  readonly summary: string;
  /** JSON Schema of each property of `data`. All are required. */
  readonly data: Readonly<Record<string, object>>;
  /** Values of an example in the AsyncAPI document. */
  readonly example: { readonly id: string; readonly time: string; readonly sequence: string; readonly data: object };
}

/** JSON Schema of a version. */
export const VERSION_SCHEMA = { type: 'string', minLength: VERSION.min, maxLength: VERSION.max };

/**
 * Events for live clients, by their field of `ApplicationEvent`. Other events are internal and have
 * no `sequence`.
 */
export const LIVE_EVENTS: Readonly<Record<string, LiveEvent>> = {
  paused: {
    summary: 'The application was paused.',
    data: { status: { type: 'string', const: 'paused' } },
    example: {
      id: '019a9e42-6a55-73d8-bb04-5e7a9c1f3d26',
      time: '2026-05-12T09:01:29.813Z',
      sequence: '8',
      data: { status: 'paused' },
    },
  },
  resumed: {
    summary: 'The application is online again.',
    data: { status: { type: 'string', const: 'online' } },
    example: {
      id: '019a9e43-7f02-7b9c-a1e8-4d6c0b2f5e83',
      time: '2026-05-12T09:02:40.642Z',
      sequence: '9',
      data: { status: 'online' },
    },
  },
  versionChanged: {
    summary: 'The application has another version.',
    data: { version: VERSION_SCHEMA, previousVersion: VERSION_SCHEMA },
    example: {
      id: '019a9e41-9c18-7e33-8a6d-0f9b2c5d8e71',
      time: '2026-05-12T09:00:37.016Z',
      sequence: '7',
      data: { version: '1.1', previousVersion: '1.0' },
    },
  },
  deleted: {
    summary: 'The application was deleted. The connection is closed with 4102 after it.',
    data: {},
    example: { id: '019a9e45-1d4e-7280-9c37-8b5f6e0a1d94', time: '2026-05-12T09:04:26.702Z', sequence: '10', data: {} },
  },
};

export const LIVE_EVENT_TYPE_PREFIX = 'latchkey.application.';

const sourceOf = (applicationId: string) => `/applications/${applicationId}`;

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
  const facts = { id, source: sourceOf(applicationId), type, time, datacontenttype: 'application/json' };
  return { specversion: '1.0', ...facts, ...numbers, data };
}
