import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@latchkey/kit/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { type OwnRedis, startOwnRedis } from '@latchkey/testkit/own-redis';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ObjectStore } from '../storage/object-store/object-store.ts';
import { sweepObjectDeletions } from '../storage/sweep/sweep.ts';
import { startAvatarProcess } from '../testing/avatar/avatar-process.ts';
import { jpegOfSize, noiseImage, plainImage } from '../testing/avatar/images.ts';
import {
  avatarHoldings,
  reasonOf,
  someAccount,
  startTestAvatars,
  storeWith,
  type TestAvatars,
} from '../testing/avatar/test-avatars.ts';
import { getAvatar } from './avatar.ts';

const MIB = 1024 * 1024;
/** What nothing has come of leaves. */
const nothing = (...states: string[]) => ({ states, objects: 0, notes: 0 });
const signal = new AbortController().signal;
/** A decoder makes way for everything else, also as it starts. */
const PATIENCE = { timeoutMs: 15_000 };

let redis: OwnRedis;
let image: Buffer;
beforeAll(async () => {
  redis = await startOwnRedis();
  image = await plainImage(60, 40).png().toBuffer();
  return () => redis.remove();
});

let test: TestAvatars;
let accountId: string;
beforeEach(async () => {
  await redis.empty();
  test = await startTestAvatars({ redisUrl: redis.url });
  accountId = someAccount();
  return () => test.stop();
});

const holdings = () => avatarHoldings(test, accountId);
const holds = (expected: unknown) => eventually(async () => expect(await holdings()).toEqual(expected));

/** Makes everything due that is noted, and sweeps it. */
async function sweepAll(): Promise<void> {
  await test.files.db.query('update object_deletion set due_at = now()');
  await test.files.db.query(`update avatar set due_at = now() - interval '1 s' where state <> 'recorded'`);
  await test.avatars.sweep(signal);
  await sweepObjectDeletions(test.ctx, signal);
}

describe('a body', () => {
  it('may have 3 MiB and not a byte more, whether its size is told or not', async () => {
    const [fits, tooLarge] = [await jpegOfSize(3 * MIB), await jpegOfSize(3 * MIB + 1)];
    expect(await reasonOf(test.upload(accountId, fits, { byteSize: fits.length }))).toBe('done');
    expect(await reasonOf(test.upload(accountId, fits))).toBe('done');
    const unread = new Readable({ read: () => expect.unreachable('it was read') });
    expect(await reasonOf(test.upload(accountId, unread, { byteSize: 3 * MIB + 1 }))).toBe('avatar_too_large');
    expect(await reasonOf(test.upload(accountId, tooLarge))).toBe('avatar_too_large');
    await holds({ states: ['replaced', 'recorded', 'abandoned'], objects: 1, notes: 0 });
  });

  it('that is empty or breaks off leaves nothing', async () => {
    expect(await reasonOf(test.upload(accountId, Buffer.alloc(0)))).toBe('file_empty');
    const body = new Readable({ read: () => undefined });
    body.push(image.subarray(0, 50));
    const upload = reasonOf(test.upload(accountId, body));
    await eventually(async () => expect((await holdings()).states).toHaveLength(2));
    body.destroy(new Error('the client has gone'));
    expect(await upload).toBe('upload_interrupted');
    await sweepAll();
    await holds(nothing());
  });

  it('that takes too long is refused, and leaves nothing', async () => {
    const slow = test.connect({ redisUrl: redis.url, env: { UPLOAD_DEADLINE_SECONDS: '1' } });
    expect(await reasonOf(slow.upload(accountId, new Readable({ read: () => undefined })))).toBe('upload_timeout');
    await holds(nothing('abandoned'));
  });

  it('waits for no other beyond as many as may be', async () => {
    const gate = Promise.withResolvers<void>();
    test.identity.waitFor(gate.promise);
    const few = test.connect({ redisUrl: redis.url, env: { AVATARS_AT_ONCE: '2' } });
    const uploads = [few.upload(accountId, image), few.upload(someAccount(), image)];
    expect(await reasonOf(few.upload(someAccount(), image))).toBe('avatars_busy');
    gate.resolve();
    expect(await Promise.all(uploads.map(reasonOf))).toEqual(['done', 'done']);
    expect(await reasonOf(few.upload(someAccount(), image))).toBe('done');
  });

  it('has its account hold two places and no more, and not for long', async () => {
    const slow = () => new Readable({ read: () => undefined });
    const bodies = [slow(), slow()];
    const uploads = bodies.map((body) => reasonOf(test.upload(accountId, body)));
    const refusal = await test.upload(accountId, image).catch((err: unknown) => err);
    expect(refusal).toMatchObject({
      reason: 'avatars_under_way',
      kind: 'rate_limited',
      code: 'rate_limit_reached',
      metadata: { policy: 'avatars-at-once', limit: '2', windowSeconds: '45', remaining: '0', retryAfterSeconds: '20' },
    });
    expect(await reasonOf(test.upload(someAccount(), image))).toBe('done');
    bodies[0]?.destroy(new Error('the client has gone'));
    expect(await uploads[0]).toBe('upload_interrupted');
    expect(await reasonOf(test.upload(accountId, image))).toBe('done');
    bodies[1]?.destroy(new Error('the client has gone'));
    expect(await uploads[1]).toBe('upload_interrupted');
  });
});

describe('uploads from one network', () => {
  const slow = () => new Readable({ read: () => undefined });
  const from = (network: string) => test.upload(someAccount(), image, { clientNetwork: network });

  it('hold a quarter of all places and no more, whatever accounts they are of', async () => {
    const bodies = Array.from({ length: 16 }, slow);
    const held = bodies.map((body) => reasonOf(test.upload(someAccount(), body, { clientNetwork: '192.0.2.1' })));
    const refusal = await from('192.0.2.1').catch((err: unknown) => err);
    expect(refusal).toMatchObject({
      reason: 'avatars_of_network',
      kind: 'rate_limited',
      code: 'rate_limit_reached',
      metadata: { policy: 'avatars-at-once-ip', limit: '16', windowSeconds: '45', remaining: '0', retryAfterSeconds: '20' },
    });
    expect(await reasonOf(from('192.0.2.2'))).toBe('done');
    bodies[0]?.destroy(new Error('the client has gone'));
    expect(await held[0]).toBe('upload_interrupted');
    expect(await reasonOf(from('192.0.2.1'))).toBe('done');
    for (const body of bodies) body.destroy(new Error('the client has gone'));
    await Promise.all(held);
  });
});

describe('whoever has had few avatars made lately', () => {
  it('comes before those who have had more', async () => {
    await test.avatars.stop();
    const gate = Promise.withResolvers<void>();
    test.identity.waitFor(gate.promise);
    const single = test.connect({ redisUrl: redis.url, env: { AVATAR_DECODES_AT_ONCE: '1' } });
    const order: string[] = [];
    const send = (name: string, account: string) => single.upload(account, image).then(() => order.push(name));
    const waiting = (many: number) =>
      eventually(async () => {
        const counts = await redis.ask((client) =>
          Promise.all([client.llen('latchkey:queue:avatar:wait'), client.zcard('latchkey:queue:avatar:prioritized')]),
        );
        expect(counts[0] + counts[1]).toBe(many);
      });
    const uploads = [send('first', accountId)];
    await eventually(() => expect(test.identity.calls).toBe(1), PATIENCE);
    uploads.push(send('second of the same', accountId));
    await waiting(1);
    uploads.push(send('another’s', someAccount()));
    await waiting(2);
    gate.resolve();
    await Promise.all(uploads);
    expect(order).toEqual(['first', 'another’s', 'second of the same']);
  });
});

describe('an image that is refused', () => {
  it('leaves nothing, and the avatar that there is', async () => {
    const id = await test.upload(accountId, image);
    expect(await reasonOf(test.upload(accountId, Buffer.from('GIF89a')))).toBe('image_unsupported');
    expect(await reasonOf(test.upload(accountId, image.subarray(0, -20)))).toBe('image_damaged');
    expect(await reasonOf(test.upload(accountId, await plainImage(4_001, 4_000).jpeg().toBuffer()))).toBe(
      'image_too_many_pixels',
    );
    expect((await getAvatar(test.ctx, accountId, undefined)).avatarId).toBe(id);
    await holds({ states: ['recorded', 'refused', 'refused', 'refused'], objects: 1, notes: 0 });
    await sweepAll();
    expect((await holdings()).states).toEqual(['recorded']);
  });
});

describe('uploads of one account at once', () => {
  it('leave one avatar, the same here and at identity, and one image', async () => {
    const instances = [test, ...Array.from({ length: 3 }, () => test.connect({ redisUrl: redis.url }))];
    const uploads = [...instances, ...instances].map((instance) => instance.upload(accountId, image));
    const ids = await Promise.all(uploads);
    const current = test.identity.avatarOf(accountId);
    expect(ids).toContain(current);
    expect((await getAvatar(test.ctx, accountId, undefined)).avatarId).toBe(current);
    await eventually(async () => {
      const { states, objects, notes } = await holdings();
      expect([states.filter((state) => state === 'recorded').length, objects, notes]).toEqual([1, 1, 0]);
    });
  });

  it('come to the same end when the later one is recorded first', async () => {
    const first = Promise.withResolvers<void>();
    test.identity.waitFor(first.promise);
    const early = test.upload(accountId, image);
    await eventually(() => expect(test.identity.calls).toBe(1), PATIENCE);
    test.identity.waitFor(undefined);
    const late = await test.upload(accountId, image);
    first.resolve();
    expect(await reasonOf(early)).toBe('done');
    expect(test.identity.avatarOf(accountId)).toBe(late);
    expect((await getAvatar(test.ctx, accountId, undefined)).avatarId).toBe(late);
    await holds({ states: ['replaced', 'recorded'], objects: 1, notes: 0 });
  });
});

/** The decoder starts with a low priority, and an idle worker asks the queue every 5 s. */
describe('with Redis', { timeout: 60_000 }, () => {
  it.each([
    ['gone', () => redis.stop(), () => redis.start()],
    ['frozen', async () => redis.freeze(), async () => redis.thaw()],
  ])('%s, an upload fails within 5 s and leaves nothing, and later ones succeed', async (_what, breakIt, mend) => {
    const id = await test.upload(accountId, image);
    await breakIt();
    const startedAt = performance.now();
    expect(await reasonOf(test.upload(accountId, image)).finally(mend)).toBe('dependency_unavailable');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect((await getAvatar(test.ctx, accountId, undefined)).avatarId).toBe(id);
    await holds({ states: ['recorded', 'abandoned'], objects: 1, notes: 0 });
    await eventually(async () => expect(await reasonOf(test.upload(accountId, image))).toBe('done'), PATIENCE);
  });

  it('emptied under an upload, that ends with an error once nobody has come for it, and leaves nothing', async () => {
    const alone = test.connect({ redisUrl: redis.url, worker: 'apart', env: { AVATAR_WAIT_SECONDS: '1' } });
    await test.avatars.stop();
    expect(await reasonOf(alone.upload(accountId, image))).toBe('dependency_unavailable');
    await holds(nothing('abandoned'));
  });
});

describe('with the store', () => {
  const withStore = (methods: (store: ObjectStore) => Partial<ObjectStore>, env = {}) =>
    test.connect({ redisUrl: redis.url, env, aroundStore: (store) => storeWith(store, methods(store)) });
  const fail = () => Promise.reject(new Error('no space left'));

  it('full, what is sent is not kept, and the error is clean', async () => {
    const full = withStore(() => ({ put: fail }));
    expect(await reasonOf(full.upload(accountId, image))).toBe('dependency_unavailable');
    expect((await holdings()).objects).toBe(0);
    await sweepAll();
    expect(await holdings()).toEqual(nothing());
  });

  it('failing for the worker, the upload waits for the next try, and succeeds with it', async () => {
    await test.avatars.stop();
    let failures = 1;
    const failing = withStore((store) => ({
      put: async (...args) => {
        // What is sent is stored first, and the image second.
        if (
          (await test.files.db.query('select from avatar where account_id = $1', [accountId])).rowCount !== 0 &&
          puts++ > 0 &&
          failures-- > 0
        )
          await fail();
        await store.put(...args);
      },
    }));
    let puts = 0;
    expect(await reasonOf(failing.upload(accountId, image))).toBe('done');
    expect(puts).toBe(3);
    await sweepAll();
    await eventually(async () => expect(await holdings()).toEqual({ states: ['recorded'], objects: 1, notes: 0 }));
  });

  it('slow, an upload that is given up meanwhile stays so, and the image goes', async () => {
    await test.avatars.stop();
    const [stored, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let puts = 0;
    const slow = withStore(
      (store) => ({
        async put(...args) {
          await store.put(...args);
          puts += 1;
          if (puts !== 4) return;
          stored.resolve();
          await gate.promise;
        },
      }),
      { AVATAR_WAIT_SECONDS: '5' },
    );
    // By then a decoder has started.
    await slow.upload(someAccount(), image);
    const upload = reasonOf(slow.upload(accountId, image));
    await stored.promise;
    expect(await upload).toBe('dependency_unavailable');
    expect(await holdings()).toMatchObject({ states: ['abandoned'], objects: 1 });
    gate.resolve();
    await holds(nothing('abandoned'));
    expect(test.identity.avatarOf(accountId)).toBeUndefined();
  });

  it('failing for removals, nothing of it is told, and the sweeper removes what is left', async () => {
    await test.avatars.stop();
    const stuck = withStore(() => ({ remove: fail }));
    await stuck.upload(accountId, image);
    expect(await reasonOf(stuck.upload(accountId, image))).toBe('done');
    await eventually(async () => expect((await holdings()).states).toEqual(['replaced', 'recorded']));
    expect((await holdings()).objects).toBe(4);
    await sweepAll();
    await eventually(async () => expect(await holdings()).toEqual({ states: ['recorded'], objects: 1, notes: 0 }));
  });
});

describe('with identity', () => {
  it('down for a moment, the upload waits and succeeds', async () => {
    test.identity.failWith(new Error('not now'));
    const upload = reasonOf(test.upload(accountId, image));
    await eventually(() => expect(test.identity.calls).toBeGreaterThan(0), PATIENCE);
    test.identity.failWith(undefined);
    expect(await upload).toBe('done');
    await holds({ states: ['recorded'], objects: 1, notes: 0 });
  });

  it('down for longer, the upload ends with an error, the earlier avatar stays, and the new one is made up for', async () => {
    // The image is made by whoever has started a decoder already.
    const hasty = test.connect({ redisUrl: redis.url, worker: 'apart', env: { AVATAR_WAIT_SECONDS: '1' } });
    const id = await test.upload(accountId, image);
    test.identity.failWith(new Error('not now'));
    expect(await reasonOf(hasty.upload(accountId, image))).toBe('dependency_unavailable');
    expect((await getAvatar(test.ctx, accountId, undefined)).avatarId).toBe(id);
    // Nobody but the sweeper.
    await Promise.all([test.avatars.stop(), hasty.avatars.stop()]);
    test.identity.failWith(undefined);
    await sweepAll();
    await eventually(async () => {
      expect(test.identity.avatarOf(accountId)).not.toBe(id);
      expect((await getAvatar(test.ctx, accountId, undefined)).avatarId).toBe(test.identity.avatarOf(accountId));
      expect(await holdings()).toMatchObject({ objects: 1, notes: 0 });
    });
  });

  it('told and its answer lost, what is done again comes to the same end', async () => {
    test.identity.loseAnswers(true);
    const upload = test.upload(accountId, image);
    await eventually(() => expect(test.identity.calls).toBeGreaterThan(0), PATIENCE);
    test.identity.loseAnswers(false);
    expect(test.identity.avatarOf(accountId)).toBe(await upload);
    await holds({ states: ['recorded'], objects: 1, notes: 0 });
  });

  it('knowing no such account, the upload is refused and leaves nothing', async () => {
    test.identity.forget(accountId);
    expect(await reasonOf(test.upload(accountId, image))).toBe('avatar_not_found');
    await holds(nothing('refused'));
  });
});

describe('with the database', () => {
  it('frozen while an upload waits, that ends within 5 s', async () => {
    const proxy = await startTcpProxy(test.files.url);
    onTestFinished(() => proxy.close());
    const beyond = test.connect({ redisUrl: redis.url, url: proxy.url, worker: 'apart' });
    await test.avatars.stop();
    const upload = reasonOf(beyond.upload(accountId, image));
    await eventually(async () => expect(await redis.ask((client) => client.exists('latchkey:queue:avatar:wait'))).toBe(1));
    proxy.freeze();
    const startedAt = performance.now();
    expect(await upload).toBe('dependency_unavailable');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await proxy.restore();
    await sweepAll();
    await eventually(async () => expect((await holdings()).objects).toBe(0));
  });
});

describe('a worker apart', () => {
  it('makes what others receive, and when it is killed in the middle, another does it again', async () => {
    const receiver = test.connect({ redisUrl: redis.url, worker: 'apart' });
    await test.avatars.stop();
    const stuck = await startAvatarProcess({ url: test.files.url, objectsDir: test.files.objectsDir, redisUrl: redis.url });
    const upload = receiver.upload(accountId, await noiseImage(500, 500).jpeg().toBuffer());
    await stuck.toldIdentity;
    expect((await holdings()).states).toEqual(['stored']);
    stuck.kill();
    const next = test.connect({ redisUrl: redis.url });
    expect(await upload).toBe(test.identity.avatarOf(accountId));
    await holds({ states: ['recorded'], objects: 1, notes: 0 });
    await next.avatars.stop();
  }, 40_000);

  it('killed without another, the upload ends with an error and nothing is left', async () => {
    const receiver = test.connect({ redisUrl: redis.url, worker: 'apart', env: { AVATAR_WAIT_SECONDS: '6' } });
    await test.avatars.stop();
    const stuck = await startAvatarProcess({
      url: test.files.url,
      objectsDir: test.files.objectsDir,
      redisUrl: redis.url,
      stuckAt: 'decoding',
    });
    const upload = reasonOf(receiver.upload(accountId, image));
    await stuck.took;
    stuck.kill();
    expect(await upload).toBe('dependency_unavailable');
    await holds(nothing('abandoned'));
    // What the queue still tells of is not begun.
    const next = test.connect({ redisUrl: redis.url });
    await delay(0);
    expect(await reasonOf(next.upload(someAccount(), image))).toBe('done');
    expect(test.identity.avatarOf(accountId)).toBeUndefined();
  }, 40_000);
});

describe('a store of another machine', () => {
  it('hands the image over by itself', async () => {
    await test.avatars.stop();
    const remote = test.connect({
      redisUrl: redis.url,
      aroundStore: (store) => storeWith(store, { localPath: () => undefined }),
      logger: createLogger('files', 'silent'),
    });
    const large = await jpegOfSize(3 * MIB);
    expect((await getAvatar(test.ctx, accountId, await remote.upload(accountId, large))).image.length).toBeGreaterThan(50);
  });
});
