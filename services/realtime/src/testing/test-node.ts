import { toJson } from '@bufbuild/protobuf';
import { createLogger } from '@latchkey/kit/log/logger';
import { channelOf, Redis } from '@latchkey/kit/redis/redis';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { onTestFinished } from 'vitest';
import { readRealtimeConfig } from '../config.ts';
import { frameOf, type LiveEvent } from '../frame/frame.ts';
import { createRealtimeService, type RealtimeOverrides } from '../service.ts';
import type { FakeApplication, FakeApps } from './fake-apps.ts';
import { type ConnectOptions, openTestClient } from './test-client.ts';

export type TestNode = Awaited<ReturnType<typeof startNode>>;

interface NodeOptions extends RealtimeOverrides {
  readonly env?: NodeJS.ProcessEnv;
}

/** No periodic reconciliation. */
export const NEVER = { reconcileMs: 3_600_000 };

/** A node of the service until the test ends. */
export async function startNode(apps: FakeApps, redisUrl: string, { env, ...overrides }: NodeOptions = {}) {
  const config = readRealtimeConfig({ REALTIME_HOST: '127.0.0.1', REALTIME_PORT: '0', REDIS_URL: redisUrl, ...env });
  const lines: Array<Record<string, unknown>> = [];
  const logger = createLogger('realtime', 'debug', { write: (line) => void lines.push(JSON.parse(line)) });
  const service = createRealtimeService(config, { appsTransport: apps.transport, logger, overrides });
  await service.start();
  onTestFinished(() => service.stop());
  const { port } = service;
  const connect = (key: string, options?: ConnectOptions) => openTestClient(port, key, options);
  /** Connects, and waits for `ready`. */
  const open = async ({ socketKey }: FakeApplication) => {
    const client = connect(socketKey);
    await client.ready();
    return client;
  };
  return { service, port, lines, connect, open };
}

/** Published where there is no event: nodes compare the application with the event log. */
export const RECONCILE = 'reconcile';

/** Publishes texts and events to the nodes until the test ends, as the apps service does. */
export function createPublisher(redisUrl: string) {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1, commandTimeout: 5_000 });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  const publish = async ({ id }: FakeApplication, text: string) =>
    void (await redis.publish(channelOf(redis, 'realtime', id), text));
  return {
    publish,
    async broadcast(application: FakeApplication, ...events: readonly LiveEvent[]) {
      for (const event of events) await publish(application, publishedText(application, event));
    },
  };
}

/** The text that is published for an event. */
export function publishedText({ id: applicationId }: FakeApplication, { event, ...facts }: LiveEvent): string {
  const json = toJson(ApplicationEventSchema, event, { useProtoFieldName: true }) as Record<string, object>;
  const [type = '', data = {}] = Object.entries(json)[0] ?? [];
  return JSON.stringify({ ...facts, applicationId, type, data, sequence: String(facts.sequence) });
}

/** The text of an event that clients receive. */
export function textOf({ id }: FakeApplication, event: LiveEvent): string {
  return frameOf(id, event).bytes.toString();
}

/** Numbers from the first to the last. */
export const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
