import specs from '@asyncapi/specs';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { newId } from '@latchkey/kit/validation/id';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { Ajv, type AnySchema } from 'ajv';
import addFormats from 'ajv-formats';
import { expect, it } from 'vitest';
import { asyncApiFor, asyncApiDocument as document } from './asyncapi.ts';
import { errors } from './errors.ts';
import { encodeEvent, encodeReady } from './frame/frame.ts';
import { CLIENT_FRAME_BYTES_MAX, REALTIME_PATH } from './protocol.ts';
import { CLOSE } from './socket/close-code.ts';
import { FRAMES_MAX } from './socket/frame-meter.ts';

const { messages } = document.components;
const { channels } = document;
const ID = '019a9e3c-52f0-7c41-b0f3-6d1a8e5f2b90';

/** Events that clients do not receive. */
const INTERNAL = ['runtimeKeyRotated'];

const snapshot = { applicationId: ID, name: 'Engine', status: 'online', version: '1.0', lastSequence: 6 } as const;
const events = [
  { case: 'paused', value: { status: 'paused' } },
  { case: 'resumed', value: { status: 'online' } },
  { case: 'versionChanged', value: { version: '1.1', previousVersion: '1.0' } },
  { case: 'deleted', value: {} },
] as const satisfies Array<MessageInitShape<typeof ApplicationEventSchema>['event']>;

const sent: ReadonlyArray<readonly [string, string | undefined]> = [
  ['ready', encodeReady(snapshot, false, new Date())],
  ...events.map((event, i) => {
    const body = create(ApplicationEventSchema, { event });
    return [event.case, encodeEvent(ID, { id: newId(), sequence: 7 + i, createdAt: new Date(), event: body })] as const;
  }),
];

function compile(schema: AnySchema, options = {}) {
  const ajv = new Ajv({ strict: false, allErrors: true, ...options });
  addFormats.default(ajv);
  return ajv.compile(schema);
}

it('is valid AsyncAPI 3.0, with every reference', () => {
  const validate = compile(specs.schemas['3.0.0'] as AnySchema, { meta: false, validateSchema: false });
  validate(document);
  expect(validate.errors).toBeNull();
  for (const [, path = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    expect(
      path.split('/').reduce((node, name) => node?.[name], document),
      path,
    ).toBeDefined();
  }
});

it('has a message for each event of the protocol that clients receive, and ready', () => {
  const public_ = ApplicationEventSchema.fields.filter(({ localName }) => !INTERNAL.includes(localName));
  expect(Object.keys(messages).sort()).toEqual([...public_.map(({ localName }) => localName), 'ready'].sort());
  expect(sent.map(([name]) => name).sort()).toEqual(Object.keys(messages).sort());
});

it.each(sent)('describes %s as it is sent, and its example', (name, text) => {
  const frame = JSON.parse(text ?? '');
  const { name: type, payload, examples } = messages[name];
  expect(type).toBe(frame.type);
  const validate = compile(payload);
  for (const value of [frame, ...examples.map((example: { payload: unknown }) => example.payload)]) {
    expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
  }
  expect(validate({ ...frame, later: 1 })).toBe(true);
  for (const property of Object.keys(frame)) expect(validate({ ...frame, [property]: undefined }), property).toBe(false);
  expect(Object.keys(payload.properties.data.properties ?? {}).sort()).toEqual(Object.keys(frame.data).sort());
});

it('names the endpoint, its limits, every close code and every rejection', () => {
  const { realtime } = channels;
  expect(realtime.address).toBe(REALTIME_PATH);
  expect(realtime.description).toContain(`${CLIENT_FRAME_BYTES_MAX} bytes`);
  expect(realtime.description).toContain(`${FRAMES_MAX} frames`);
  // The WebSocket library closes with the codes of RFC 6455.
  const codes = new Set([1002, 1007, 1008, 1009, ...Object.values(CLOSE).map(({ code }) => code)]);
  expect(new Set(realtime['x-close-codes'].map(({ code }: { code: number }) => code))).toEqual(codes);
  for (const code of codes) expect(realtime.description).toContain(`| ${code} |`);
  const { upgrade_required, ...others } = errors;
  const rejections = Object.values(others).map((make) => `${make().httpStatus} ${make().code}`);
  const named = realtime['x-refusals'].map(({ status, code }: { status: number; code: string }) => `${status} ${code}`);
  expect(new Set(named)).toEqual(new Set([...rejections, `426 ${upgrade_required().code}`]));
  for (const text of named) expect(realtime.description).toContain(`| ${text.replace(/ (.*)/, ' | `$1`')} |`);
});

it.each([
  [
    { host: 'live.example.com', 'x-forwarded-proto': 'https' },
    { host: 'live.example.com', protocol: 'wss' },
  ],
  [{ host: 'localhost:8081' }, { host: 'localhost:8081', protocol: 'ws' }],
  [{ host: 'a b' }, { host: 'localhost', protocol: 'ws' }],
])('names the server that the client asked: %o', (headers, server) => {
  expect(asyncApiFor({ headers })).toMatchObject({ servers: { realtime: server } });
});
