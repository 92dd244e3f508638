import { type DescField, getOption, hasOption } from '@bufbuild/protobuf';
import { LIVE_EVENT_TYPE_PREFIX, REALTIME_PATH } from '@latchkey/contract/cloud-event';
import { VERSION } from '@latchkey/contract/lengths';
import { EVENTS_RETAINED } from '@latchkey/contract/limits';
import { ApplicationEventSchema, live, text } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { CONNECTION_READY, KEY_EXPIRING } from './frame/frame.ts';
import { FRAMES_MAX } from './socket/live-socket.ts';

const DESCRIPTION = [
  `\`GET ${REALTIME_PATH}\`, upgraded to a WebSocket.`,
  '**Order.** `ready` comes first. Events follow in order of `sequence`, which grows by one per application, each at least once: drop events whose `sequence` is not greater than the last one you processed.',
  `**Resuming.** Connect with \`Last-Event-ID: <epoch>:<sequence>\`, or \`?lastEventId=<sequence>&epoch=<epoch>\`, to receive what you missed, of the last ${EVENTS_RETAINED.hours} hours and ${EVENTS_RETAINED.count.toLocaleString('en')} events. \`ready\` has \`resumed: true\` if all later events follow. Otherwise, and for another epoch and an invalid, duplicate or future sequence, it has \`resumed: false\`, and its snapshot replaces all events up to \`lastSequence\`.`,
  `**What clients send.** Only the pongs that WebSocket libraries send. Text is ignored. A frame or message over 4096 bytes, a binary one, and more than ${FRAMES_MAX} frames in 10 s, pings and pongs included, close the connection.`,
  '**Heartbeat.** The service pings every 30 s, and drops a client that misses two pings.',
  'Close codes, and errors before the upgrade: `docs/events.md`.',
].join('\n\n');

const ATTRIBUTES = {
  specversion: { type: 'string', const: '1.0' },
  id: { type: 'string', format: 'uuid', description: 'Unique for each event, and the same for repeated deliveries.' },
  source: {
    type: 'string',
    pattern: '^\\/applications\\/[0-9a-f-]{36}$',
    description: 'The application, as `/applications/<id>`.',
  },
  time: { type: 'string', format: 'date-time', description: 'Time of the event, in UTC.' },
  datacontenttype: { type: 'string', const: 'application/json' },
  epoch: {
    type: 'string',
    description: 'Epoch of the event log. It changes when the log may have lost events, as when a backup is restored.',
  },
};

const LAST_EVENT_ID = '^([^:]+:)?(0|[1-9][0-9]*)$';

const SEQUENCE = {
  type: 'string',
  pattern: '^[1-9]\\d*$',
  description: 'Number of the event within the application, in decimal, beginning at 1.',
};

const EXAMPLE = {
  specversion: '1.0',
  source: '/applications/019a9e3c-52f0-7c41-b0f3-6d1a8e5f2b90',
  datacontenttype: 'application/json',
  epoch: 'b1946ac92492d234',
};

/** Attributes that the examples of events share. */
const EVENT_EXAMPLE = { id: '019a9e41-9c18-7e33-8a6d-0f9b2c5d8e71', time: '2026-05-12T09:00:37.016Z', sequence: '7' };

interface Message {
  readonly name: string;
  readonly type: string;
  readonly summary: string;
  /** Schemas, each with the value that it has in the example. */
  readonly data: Readonly<Record<string, { readonly example: unknown; readonly [keyword: string]: unknown }>>;
  /** Attributes of the example. Events of the log have a sequence. */
  readonly attributes: { readonly id: string; readonly time: string; readonly sequence?: string };
}

function toMessage({ name, type, summary, data, attributes }: Message) {
  const required = Object.keys(data);
  const schemas = Object.fromEntries(Object.entries(data).map(([field, { example, ...schema }]) => [field, schema]));
  const examples = Object.fromEntries(Object.entries(data).map(([field, { example }]) => [field, example]));
  const dataSchema = { type: 'object', properties: schemas, ...(required.length > 0 && { required }) };
  const properties = {
    ...ATTRIBUTES,
    type: { type: 'string', const: type },
    data: dataSchema,
    ...(attributes.sequence && { sequence: SEQUENCE }),
  };
  return {
    name: type,
    title: type,
    summary,
    payload: { type: 'object', properties, required: Object.keys(properties) },
    examples: [{ name, payload: { ...EXAMPLE, type, ...attributes, data: examples } }],
  };
}

const ready = toMessage({
  name: 'ready',
  type: CONNECTION_READY,
  summary: 'The state of the application. The first frame of each connection, without a `sequence`.',
  data: {
    applicationId: { type: 'string', format: 'uuid', example: '019a9e3c-52f0-7c41-b0f3-6d1a8e5f2b90' },
    name: { type: 'string', minLength: 1, example: 'Difference Engine' },
    status: { type: 'string', enum: ['online', 'paused'], example: 'online' },
    version: { type: 'string', minLength: VERSION.min, maxLength: VERSION.max, example: '1.0' },
    lastSequence: {
      type: 'string',
      pattern: '^(0|[1-9]\\d*)$',
      description: '`sequence` of the newest event in this snapshot; `0`: no event yet.',
      example: '6',
    },
    resumed: {
      type: 'boolean',
      description:
        "True: all events after the client's `sequence` follow. False: it sent none, or some are no longer stored; the snapshot replaces them.",
      example: false,
    },
  },
  attributes: { id: '019a9e41-0b7d-7a06-9f52-3c8e1d4b7a15', time: '2026-05-12T09:00:00.000Z' },
});

const keyExpiring = toMessage({
  name: 'keyExpiring',
  type: KEY_EXPIRING,
  summary: 'The socket key was rotated. It is accepted until `expiresAt`; the connection is closed with 4103 then.',
  data: { expiresAt: { type: 'string', format: 'date-time', example: '2026-05-13T09:03:12.000Z' } },
  attributes: { id: '019a9e47-4b1a-7c63-9d2f-8e5f0a6c3b71', time: '2026-05-12T09:03:12.004Z' },
});

/** Each event for live clients, by its options in the protocol. */
const events = Object.fromEntries(
  ApplicationEventSchema.fields.filter((event) => hasOption(event, live)).map((event) => [event.localName, describeEvent(event)]),
);

function describeEvent(event: DescField) {
  const data = (event.message?.fields ?? []).map((field) => {
    const { const: only, minLength, maxLength, example } = getOption(field, text);
    const rule = only ? { const: only, example: only } : { minLength, maxLength, example };
    return [field.jsonName, { type: 'string', ...rule }] as const;
  });
  return toMessage({
    name: event.localName,
    type: LIVE_EVENT_TYPE_PREFIX + event.name,
    summary: getOption(event, live),
    data: Object.fromEntries(data),
    attributes: EVENT_EXAMPLE,
  });
}

const messages: Readonly<Record<string, ReturnType<typeof toMessage>>> = { ready, keyExpiring, ...events };

const send = (summary: string, names: readonly string[]) => {
  const messages = names.map((name) => ({ $ref: `#/channels/realtime/messages/${name}` }));
  return { action: 'send', summary, channel: { $ref: '#/channels/realtime' }, messages };
};

export const asyncApiDocument = {
  asyncapi: '3.0.0',
  info: {
    title: 'Latchkey live events',
    version: '1',
    description:
      'Clients of an application receive an event when it is paused, resumed, gets a new version or is deleted, after the commit.\n\nA connection belongs to the application whose socket key opened it. Each text frame is one CloudEvents 1.0 event in JSON (CloudEvents WebSocket binding, sub-protocol `cloudevents.json`). The document describes the service: what it `send`s, clients receive. Ignore unknown properties and types: more may be added.',
  },
  defaultContentType: 'application/cloudevents+json',
  servers: {
    realtime: {
      host: 'localhost:8081',
      protocol: 'ws',
      description: 'The realtime service. Each of its nodes sends all events.',
      security: [
        { $ref: '#/components/securitySchemes/socketKey' },
        { $ref: '#/components/securitySchemes/socketKeyAsSubProtocol' },
      ],
    },
  },
  channels: {
    realtime: {
      address: REALTIME_PATH,
      title: 'Live events of one application',
      description: DESCRIPTION,
      servers: [{ $ref: '#/servers/realtime' }],
      messages: Object.fromEntries(Object.keys(messages).map((name) => [name, { $ref: `#/components/messages/${name}` }])),
      bindings: {
        ws: {
          method: 'GET',
          query: {
            type: 'object',
            properties: {
              lastEventId: { type: 'string', pattern: LAST_EVENT_ID, description: 'As the header `Last-Event-ID`.' },
              epoch: { type: 'string', description: 'Epoch of `lastEventId`, if that has none.' },
            },
          },
          headers: {
            type: 'object',
            properties: {
              'Last-Event-ID': {
                type: 'string',
                pattern: LAST_EVENT_ID,
                description:
                  '`<epoch>:<sequence>`, or `<sequence>`, of the last event that the client has processed. Later events follow `ready`.',
              },
              Authorization: { type: 'string', description: '`Bearer lk_sock_…`' },
              'Sec-WebSocket-Protocol': {
                type: 'string',
                description: '`cloudevents.json`, and in browsers also `bearer.lk_sock_…`',
              },
            },
          },
          bindingVersion: '0.1.0',
        },
      },
    },
  },
  operations: {
    sendReady: send('The state of the application, as the first frame of each connection', ['ready']),
    sendKeyExpiring: send('The end of the key of the connection', ['keyExpiring']),
    sendEvent: send('Events of the application, in order of `sequence`', Object.keys(events)),
  },
  components: {
    securitySchemes: {
      socketKey: {
        type: 'http',
        scheme: 'bearer',
        bearerFormat: 'lk_sock_…',
        description: 'The application’s socket key: `Authorization: Bearer lk_sock_…`.',
      },
      socketKeyAsSubProtocol: {
        type: 'httpApiKey',
        in: 'header',
        name: 'Sec-WebSocket-Protocol',
        description:
          "For browsers, which can’t set `Authorization`: `new WebSocket(url, ['cloudevents.json', 'bearer.lk_sock_…'])`. The service selects the first.",
      },
    },
    messages,
  },
};
