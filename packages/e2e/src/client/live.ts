import { asyncApiDocument } from '@latchkey/realtime/asyncapi';
import { eventually } from '@latchkey/testkit/eventually';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { type ClientOptions, WebSocket } from 'ws';
import type { Answer, Api } from './api.ts';

/** A frame as a client reads it, and when it came, as `performance.now()` counts. */
export interface LiveFrame {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly time: string;
  readonly sequence?: string;
  // biome-ignore lint/suspicious/noExplicitAny: the AsyncAPI document checks the data.
  readonly data: any;
  readonly receivedAt: number;
}

const validators = readValidators();

/** A live connection that records its frames and checks each against the AsyncAPI document. */
export class LiveClient {
  readonly ws: WebSocket;
  readonly frames: LiveFrame[] = [];
  /** Defects of frames. */
  readonly flaws: string[] = [];
  /** The close code, or the status of a rejected upgrade; 0 without a connection. */
  readonly ended: Promise<number>;
  endedAt = Number.POSITIVE_INFINITY;

  constructor(url: string, socketKey: string, lastEventId?: string, options: ClientOptions = {}) {
    const resume = lastEventId !== undefined && { 'last-event-id': lastEventId };
    const headers = { authorization: `Bearer ${socketKey}`, ...resume };
    this.ws = new WebSocket(url, { perMessageDeflate: false, ...options, headers });
    this.ws.on('message', (data) => this.#take(String(data)));
    this.ended = new Promise((resolve) => {
      const end = (code: number) => {
        this.endedAt = performance.now();
        resolve(code);
      };
      this.ws.on('error', () => end(0));
      this.ws.on('close', end);
      this.ws.on('unexpected-response', (req, res) => {
        end(res.statusCode ?? 0);
        req.destroy();
      });
    });
  }

  /** The first frame, once it is there. */
  async ready(): Promise<LiveFrame> {
    return eventually(() => this.frames[0] ?? false, { timeoutMs: 10_000 }) as Promise<LiveFrame>;
  }

  /** The events, without what came first. */
  get events(): readonly LiveFrame[] {
    return this.frames.slice(1);
  }

  sequences(): number[] {
    return this.events.map(({ sequence }) => Number(sequence));
  }

  /** Type and what matters of the data of each event, as one line. */
  received(): string[] {
    return this.events.map(({ type, data }) => `${type.replace('latchkey.application.', '')} ${data.version ?? ''}`.trim());
  }

  #take(text: string): void {
    const frame = JSON.parse(text);
    this.frames.push({ ...frame, receivedAt: performance.now() });
    const validate = validators.get(frame.type);
    if (!validate?.(frame)) this.flaws.push(`${text}: ${JSON.stringify(validate?.errors ?? 'unknown type')}`);
  }
}

/** The schemas of frames by their types, as they are published. */
function readValidators(): ReadonlyMap<string, ValidateFunction> {
  const messages = Object.values(asyncApiDocument.components.messages);
  const ajv = new Ajv({ strict: false, allErrors: true });
  addFormats.default(ajv);
  return new Map(messages.map(({ name, payload }) => [name, ajv.compile(payload)]));
}

/** The socket key of an application, as its owner reads it. */
export async function readSocketKey(api: Api, applicationId: string): Promise<string> {
  const { data } = await api.get('/api/v1/panel/get-applications');
  return data.find(({ id }: { id: string }) => id === applicationId).applicationApiKeys.socketKey;
}

/** Sets a setting of an application. */
export function setSetting(api: Api, applicationId: string, field: string, value: unknown, mayFail = false): Promise<Answer> {
  return api.patch('/api/v1/panel/update-application-settings', { field, value }, { applicationId }, { mayFail });
}
