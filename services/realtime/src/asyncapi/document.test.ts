import { readFile } from 'node:fs/promises';
import specs from '@asyncapi/specs';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { Ajv, type AnySchema, type Options } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { errors } from '../errors.ts';
import { CLOSE } from '../socket/close-code.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { asyncApiDocument } from './document.ts';
import { EXAMPLES } from './examples.ts';
import { applicationFrames, readyFrame } from './messages.ts';
import { REFUSALS } from './refusals.ts';

const document = asyncApiDocument('ws://localhost:8081');
const { messages } = document.components;

/** Events that live clients are not told of, by their names in the protocol. */
const UNTOLD = ['runtimeKeyRotated'];

function newAjv(options: Options = {}): Ajv {
  const ajv = new Ajv({ strict: false, allErrors: true, ...options });
  addFormats.default(ajv);
  return ajv;
}

describe('the AsyncAPI document', () => {
  it('is what docs/asyncapi.json has; else run npm run generate', async () => {
    const committed = await readFile(new URL('../../../../docs/asyncapi.json', import.meta.url), 'utf8');
    expect(JSON.parse(committed)).toEqual(document);
  });

  it('is valid AsyncAPI 3.0', () => {
    // The schema brings that of JSON Schema with it, as its own part.
    const validate = newAjv({ meta: false, validateSchema: false }).compile(specs.schemas['3.0.0'] as AnySchema);
    validate(document);
    expect(validate.errors).toBeNull();
    expect(validate({ ...document, operations: { sendReady: { ...document.operations.sendReady, action: 'shout' } } })).toBe(
      false,
    );
  });

  it('refers to nothing that it does not have', () => {
    const text = JSON.stringify(document);
    const refs = [...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path as string);
    expect(refs.length).toBeGreaterThan(10);
    for (const path of refs) {
      // biome-ignore lint/suspicious/noExplicitAny: any part of the document may be referred to.
      const target = path.split('/').reduce<any>((node, name) => node?.[name], document);
      expect(target, path).toBeDefined();
    }
  });

  it('has a message for each event that live clients hear of, named as in the protocol, and ready', () => {
    const told = ApplicationEventSchema.fields.filter(({ localName }) => !UNTOLD.includes(localName));
    expect(Object.keys(messages).sort()).toEqual([...told.map(({ localName }) => localName), 'ready'].sort());
    for (const { localName, name } of told) expect(messages[localName]?.name).toBe(`latchkey.application.${name}`);
    expect(messages.ready?.name).toBe('latchkey.connection.ready');
  });

  it.each(Object.entries(messages))('has examples of %s that fit its schema, and no other’s', (name, { payload, examples }) => {
    const validate = newAjv().compile(payload);
    for (const example of examples) expect(validate(example.payload), JSON.stringify(validate.errors)).toBe(true);
    for (const [other, example] of Object.entries(EXAMPLES)) expect(validate(example), other).toBe(other === name);
  });

  it('asks for all that a frame has, and leaves room for what may come', () => {
    for (const [name, { payload, examples }] of Object.entries(messages)) {
      const validate = newAjv().compile(payload);
      const whole = examples[0]?.payload as Record<string, unknown>;
      for (const property of Object.keys(whole)) {
        const { [property]: _, ...rest } = whole;
        expect(validate(rest), `${name} without ${property}`).toBe(false);
      }
      expect(validate({ ...whole, later: 1 })).toBe(true);
    }
  });

  it('names every close code', () => {
    const named = CLOSE_CODES.map(({ code }) => code);
    expect(named).toEqual(expect.arrayContaining(Object.values(CLOSE).map(({ code }) => code)));
    // Those of RFC 6455 that the library gives to what breaks the protocol.
    expect(named).toEqual(expect.arrayContaining([1002, 1007, 1008, 1009]));
    expect(new Set(named).size).toBe(named.length);
    for (const code of named) expect(document.channels.realtime.description).toContain(`| ${code} |`);
  });

  it('names every refusal', () => {
    const { upgrade_required, ...others } = errors;
    const made = Object.values(others).map((make) => make());
    const expected = made.map(({ httpStatus, code }) => `${httpStatus} ${code}`);
    const named = REFUSALS.map(({ status, code }) => `${status} ${code}`);
    expect(new Set(named)).toEqual(new Set([...expected, `426 ${upgrade_required().code}`]));
    const inOrder = REFUSALS.toSorted((a, b) => a.status - b.status);
    expect(REFUSALS).toEqual(inOrder);
  });

  it.each([
    ['ws://localhost:8081', { host: 'localhost:8081', protocol: 'ws' }],
    ['wss://live.example.com/', { host: 'live.example.com', protocol: 'wss' }],
    ['https://example.com/latchkey/', { host: 'example.com', protocol: 'wss', pathname: '/latchkey' }],
  ])('says where %s is', (url, expected) => {
    const { host, protocol, pathname } = asyncApiDocument(url).servers.realtime;
    expect({ host, protocol, pathname }).toEqual(expected);
  });

  it('has examples that are a session', () => {
    const { ready, ...events } = EXAMPLES;
    expect(readyFrame.parse(ready)).toEqual(ready);
    for (const [name, frame] of Object.entries(events)) {
      expect(applicationFrames[name as keyof typeof events].parse(frame)).toEqual(frame);
    }
    const sequences = Object.values(events).map(({ sequence }) => Number(sequence));
    const first = Number(ready.data.lastSequence) + 1;
    expect(sequences).toEqual(sequences.map((_, i) => first + i));
  });
});
