import { readFile } from 'node:fs/promises';
import specs from '@asyncapi/specs';
import { fromJson } from '@bufbuild/protobuf';
import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import { newId } from '@latchkey/kit/validation/id';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { Ajv, type AnySchema } from 'ajv';
import addFormats from 'ajv-formats';
import { expect, it } from 'vitest';
import { asyncApiDocument } from './asyncapi.ts';
import { errors } from './errors.ts';
import { encodeKeyExpiring, encodeReady, frameOf } from './frame/frame.ts';
import { asyncApiFor, MESSAGE_BYTES_MAX } from './server.ts';
import { CLOSE } from './socket/close-code.ts';
import { FRAMES_MAX } from './socket/live-socket.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read the document as it is served.
const document: any = JSON.parse(JSON.stringify(asyncApiDocument));
const { messages } = document.components;
const exampleOf = (name: string) => messages[name].examples[0].payload;

/** The frame that is sent for the example of a message. */
function sentFor(name: string) {
  const { data, sequence } = exampleOf(name);
  const snapshot = { ...data, lastSequence: Number(data.lastSequence), epoch: 'e1' };
  if (name === 'ready') return JSON.parse(encodeReady(snapshot, data.resumed));
  if (name === 'keyExpiring') return JSON.parse(encodeKeyExpiring(newId(), 'e1', new Date(data.expiresAt)));
  const event = fromJson(ApplicationEventSchema, { [name]: data });
  const logged = { id: newId(), epoch: 'e1', sequence: Number(sequence), createdAt: new Date(), event };
  return JSON.parse(frameOf(data.applicationId ?? newId(), logged).bytes.toString());
}

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

it.each(Object.keys(messages))('describes %s as it is sent, and its example', (name) => {
  const frame = sentFor(name);
  const { name: type, payload } = messages[name];
  expect(type).toBe(frame.type);
  const validate = compile(payload);
  for (const value of [frame, exampleOf(name), { ...frame, later: 1 }]) {
    expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
  }
  expect(frame.data).toEqual(exampleOf(name).data);
  for (const property of Object.keys(frame)) expect(validate({ ...frame, [property]: undefined }), property).toBe(false);
});

it('names the endpoint and its limits, and docs/events.md every close code and every rejection', async () => {
  const { realtime } = document.channels;
  expect(realtime.address).toBe(REALTIME_PATH);
  expect(realtime.description).toContain(`${MESSAGE_BYTES_MAX} bytes`);
  expect(realtime.description).toContain(`${FRAMES_MAX} frames`);
  const page = await readFile(new URL('../../../docs/events.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| (\d{3,4}(?: `\w+`)?) \|/gm)].map(([, row]) => row);
  // The WebSocket library closes with the codes of RFC 6455.
  const codes = [1002, 1007, 1008, 1009, ...Object.values(CLOSE).map(({ code }) => code)];
  const { upgrade_required, ...others } = errors;
  const rejections = Object.values(others).map((make) => `${make().httpStatus} \`${make().code}\``);
  expect(new Set(rows)).toEqual(new Set([...codes.map(String), ...rejections, `426 \`${upgrade_required().code}\``]));
});

it.each([
  ['live.example.com', 'https', 'live.example.com', 'wss'],
  ['localhost:8081', undefined, 'localhost:8081', 'ws'],
  ['a b', undefined, 'localhost', 'ws'],
])('names the server that the client asked, at %s over %s', (host, forwarded, expected, protocol) => {
  const document = asyncApiFor({ headers: { host, 'x-forwarded-proto': forwarded } });
  expect(document).toMatchObject({ servers: { realtime: { host: expected, protocol } } });
});
