import { toJson } from '@bufbuild/protobuf';
import { createLogger } from '@latchkey/kit/logger';
import { createQueueProducer, type QueueProducer } from '@latchkey/kit/queue-producer';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { onTestFinished } from 'vitest';
import { type REALTIME_DEFAULTS, readRealtimeConfig } from '../config.ts';
import type { LiveEvent } from '../frame/frame.ts';
import { createRealtimeService, type RealtimeService } from '../service.ts';
import type { FakeApplication, FakeApps } from './fake-apps.ts';
import { type ConnectOptions, TestClient } from './test-client.ts';

/** A node of the service until the test ends, and what it logged. */
export interface TestNode {
  readonly service: RealtimeService;
  readonly port: number;
  readonly lines: Array<Record<string, unknown>>;
  /** A client until the test ends; it may be refused. */
  connect(key: string | undefined, options?: ConnectOptions): TestClient;
}

/** How a node differs from the usual one. */
export interface NodeOptions extends Partial<typeof REALTIME_DEFAULTS> {
  readonly env?: NodeJS.ProcessEnv;
}

/** Reconciliation never runs by itself. */
export const NEVER = { reconcileMs: 3_600_000 };

/** Starts a node. */
export async function startNode(
  apps: Pick<FakeApps, 'transport'>,
  redisUrl: string,
  { env, ...overrides }: NodeOptions = {},
): Promise<TestNode> {
  const defaults = { REALTIME_HOST: '127.0.0.1', REALTIME_PORT: '0' };
  const config = readRealtimeConfig({ ...defaults, REDIS_URL: redisUrl, ...env });
  const lines: Array<Record<string, unknown>> = [];
  const logger = createLogger('realtime', 'debug', { write: (line) => void lines.push(JSON.parse(line)) });
  const service = createRealtimeService(config, {
    appsTransport: apps.transport,
    logger,
    overrides: { drainMs: 1_000, ...overrides },
  });
  await service.start();
  onTestFinished(() => service.stop());
  const { port } = service;
  const connect = (key: string | undefined, options?: ConnectOptions) => {
    const client = new TestClient(port, key, options);
    onTestFinished(() => client.ws.terminate());
    return client;
  };
  return { service, port, lines, connect };
}

/** Adds events to the queue as the apps service's relay does. */
export function startRelay(redisUrl: string) {
  const logger = createLogger('relay', 'silent');
  const producer: QueueProducer = createQueueProducer({ url: redisUrl, name: 'test-relay', queues: ['realtime'], logger });
  producer.connect();
  onTestFinished(() => producer.close());
  const add = (id: string, name: string, data: object) => eventually(() => producer.add('realtime', [{ id, name, data }]));
  return {
    add,
    /** Relays events that are in the log. */
    async relay({ id: applicationId }: FakeApplication, ...events: LiveEvent[]) {
      for (const { id, sequence, createdAt, event } of events) {
        const json = toJson(ApplicationEventSchema, event, { useProtoFieldName: true }) as Record<string, object>;
        const [type = '', data = {}] = Object.entries(json)[0] ?? [];
        const facts = { id, applicationId, accountId: applicationId, type, data };
        await add(id, type, { ...facts, sequence: String(sequence), createdAt: createdAt.toISOString() });
      }
    },
  };
}
