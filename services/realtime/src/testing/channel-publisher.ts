import { Redis } from '@latchkey/kit/redis';
import { onTestFinished } from 'vitest';
import { channelOf } from '../fan-out/application-channel.ts';
import { encodeEvent, type LiveEvent } from '../frame/frame.ts';
import type { FakeApplication } from './fake-apps.ts';

/** Publishes on the channels of nodes what no worker would, until the test ends. */
export function createPublisher(redisUrl: string) {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 1, commandTimeout: 5_000 });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  const publish = async ({ id }: Pick<FakeApplication, 'id'>, text: string) =>
    void (await redis.publish(channelOf(redis, id), text));
  return {
    publish,
    /** Publishes the frames of events, in the order given. */
    async tell(application: FakeApplication, ...events: readonly LiveEvent[]) {
      for (const event of events) await publish(application, textOf(application, event));
    },
  };
}

/** The text that a worker publishes for an event. */
export function textOf({ id }: Pick<FakeApplication, 'id'>, event: LiveEvent): string {
  return encodeEvent(id, event) ?? '';
}
