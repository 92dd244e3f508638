import { Readable } from 'node:stream';
import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { DomainError, toConnectError } from '@latchkey/kit/errors/errors';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ObjectStore } from '../storage/object-store/object-store.ts';
import { avatarHoldings, reasonOf, someAccount, useTestAvatars } from '../testing/avatar/test-avatars.ts';
import { endWaiting } from './avatar.store.ts';
import { getAvatar, removeAvatar } from './avatar.ts';
import { type MakeContext, makeAvatar } from './make-avatar.ts';

const MIB = 1024 * 1024;
const ONE = { states: ['recorded'], objects: 1, notes: 0 };
const nothing = (...states: string[]) => ({ states, objects: 0, notes: 0 });

const test = useTestAvatars();

let accountId: string;
beforeEach(() => {
  accountId = someAccount();
});

const holdings = () => avatarHoldings(test, accountId);
const holds = (expected: unknown) => eventually(async () => expect(await holdings()).toEqual(expected));
const currentAvatar = async () => (await getAvatar(test.ctx, accountId, undefined)).avatarId;
const stalled = () => new Readable({ read: () => undefined });
const fail = () => Promise.reject(new Error('not now'));
const withStore = (methods: Partial<ObjectStore>) => test.connect({ changeStore: () => methods });

/** Starts an upload that no worker takes up; resolves with the avatar's id once it is queued. */
async function queueUpload(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const instance = test.connect({ enqueue: async (id) => resolve(id), limits: { waitMs: 200 } });
  const upload = instance.upload(accountId, test.image).catch(() => undefined);
  onTestFinished(async () => void (await upload));
  return promise;
}

describe('an upload', () => {
  it('replaces the avatar here and at identity, and the earlier image is removed', async () => {
    const first = await test.upload(accountId, test.image);
    const second = await test.upload(accountId, test.image);
    expect([await currentAvatar(), test.identity.avatarOf(accountId)]).toEqual([second, second]);
    expect(await reasonOf(getAvatar(test.ctx, accountId, first))).toBe('avatar_not_found');
    await holds({ ...ONE, states: ['replaced', 'recorded'] });
  });

  it('is recorded in the name of who sent it, and of the request', async () => {
    const actor = 'session 01900000-0000-7000-8000-00000000cafe 203.0.113.7';
    await test.upload(accountId, test.image, { actor });
    expect(test.identity.calls.at(-1)).toEqual([actor, 'request-1']);
  });

  it.each([
    ['of 3 MiB', 'done', () => Readable.from([Buffer.alloc(3 * MIB)])],
    ['of more than 3 MiB', 'avatar_too_large', () => Readable.from([Buffer.alloc(3 * MIB), Buffer.alloc(1)])],
    ['that is empty', 'file_empty', () => Readable.from([])],
    ['that breaks off', 'upload_interrupted', () => stalled().destroy(new Error('the client has gone'))],
    ['that takes too long', 'upload_timeout', stalled],
  ])('%s ends with %s and leaves no upload', async (_what, reason, body) => {
    const { upload } = test.connect({ limits: { bodyMs: 500 } });
    expect(await reasonOf(upload(accountId, body()))).toBe(reason);
    await test.sweepAll();
    await holds(reason === 'done' ? ONE : nothing());
  });

  it('of more than 3 MiB by its announced size is rejected unread', async () => {
    const unread = new Readable({ read: () => expect.unreachable('it was read') });
    expect(await reasonOf(test.upload(accountId, unread, { byteSize: 3 * MIB + 1 }))).toBe('avatar_too_large');
  });

  it.each([
    ['an account', 'avatars_under_way', 'avatars-at-once', 2, () => ({ accountId })],
    ['a network', 'avatars_of_network', 'avatars-at-once-ip', 16, () => ({ clientNetwork: '192.0.2.1' })],
  ])('is rejected beyond the concurrency limit of %s, until another ends', async (_of, reason, policy, limit, sender) => {
    const { upload } = test.connect();
    const bodies = Array.from({ length: limit }, stalled);
    const uploads = bodies.map((body) => reasonOf(upload(someAccount(), body, sender())));
    const metadata = { policy, limit: String(limit), windowSeconds: '45', remaining: '0', retryAfterSeconds: '20' };
    const rejection = { reason, kind: 'rate_limited', code: 'rate_limit_reached', metadata };
    await expect(upload(someAccount(), test.image, sender())).rejects.toMatchObject(rejection);
    expect(await reasonOf(upload(someAccount(), test.image))).toBe('done');
    for (const body of bodies) body.destroy(new Error('the client has gone'));
    await Promise.all(uploads);
    expect(await reasonOf(upload(someAccount(), test.image, sender()))).toBe('done');
  });

  it('is rejected beyond the concurrency limit of the process', async () => {
    const { upload } = test.connect({ limits: { uploadsMax: 1 } });
    const body = stalled();
    const first = reasonOf(upload(accountId, body));
    expect(await reasonOf(upload(someAccount(), test.image))).toBe('avatars_busy');
    body.destroy();
    await first;
  });

  it('of an account with few recent avatars comes first', async () => {
    const priorities: number[] = [];
    const enqueue = async (_id: string, priority: number) => void priorities.push(priority);
    const { upload } = test.connect({ enqueue, limits: { waitMs: 1 } });
    for (const account of [accountId, accountId, someAccount()]) await reasonOf(upload(account, test.image));
    expect(priorities).toEqual([0, 1, 0]);
  });

  it('that no worker takes up ends with 503 and leaves nothing, and no worker makes it later', async () => {
    let queued = '';
    const enqueue = async (id: string) => {
      queued = id;
    };
    const { upload } = test.connect({ enqueue, limits: { waitMs: 100 } });
    expect(await reasonOf(upload(accountId, test.image))).toBe('dependency_unavailable');
    await makeAvatar(test.ctx, queued);
    await holds(nothing('abandoned'));
    expect(test.identity.avatarOf(accountId)).toBeUndefined();
  });
});

describe('several uploads of one account', () => {
  it('concurrently leave one avatar, the same here and at identity, and one image', async () => {
    const instances = [test, test.connect(), test.connect(), test.connect()];
    await Promise.all([...instances, ...instances].map(({ upload }) => upload(accountId, test.image)));
    expect(await currentAvatar()).toBe(test.identity.avatarOf(accountId));
    await eventually(async () => {
      const { states, ...rest } = await holdings();
      expect([states.filter((state) => state === 'recorded').length, rest]).toEqual([1, { objects: 1, notes: 0 }]);
    });
  });

  it('leave the later one, also when that is recorded first', async () => {
    const gate = Promise.withResolvers<void>();
    const calls = test.identity.calls.length;
    test.identity.before = () => gate.promise;
    const early = reasonOf(test.upload(accountId, test.image));
    await eventually(() => expect(test.identity.calls.length).toBe(calls + 1));
    test.identity.before = async () => undefined;
    const late = await test.upload(accountId, test.image);
    gate.resolve();
    expect(await early).toBe('done');
    expect([await currentAvatar(), test.identity.avatarOf(accountId)]).toEqual([late, late]);
    await holds({ ...ONE, states: ['replaced', 'recorded'] });
  });
});

describe('a removal', () => {
  const remove = () => removeAvatar({ ...test.ctx, origin: SERVICE_ORIGIN }, accountId);
  const current = () => reasonOf(getAvatar(test.ctx, accountId, undefined));

  it('takes the avatar here and at identity, with its test.image, and another upload brings one back', async () => {
    await remove();
    await test.upload(accountId, test.image);
    await remove();
    await remove();
    expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
    await holds({ states: ['replaced', 'replaced', 'replaced', 'replaced'], objects: 0, notes: 0 });
    const id = await test.upload(accountId, test.image);
    expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['done', id]);
    await test.sweepAll();
    await holds({ states: ['recorded'], objects: 1, notes: 0 });
  });

  it('ends an upload that began before it', async () => {
    const gate = Promise.withResolvers<void>();
    const calls = test.identity.calls.length;
    test.identity.before = () => gate.promise;
    const upload = reasonOf(test.upload(accountId, test.image));
    await eventually(() => expect(test.identity.calls.length).toBe(calls + 1));
    test.identity.before = async () => undefined;
    await remove();
    gate.resolve();
    expect(await upload).toBe('done');
    expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
    await holds({ states: ['replaced', 'replaced'], objects: 0, notes: 0 });
  });

  it('that identity does not answer is completed by the sweeper', async () => {
    const id = await test.upload(accountId, test.image);
    test.identity.before = () => Promise.reject(new Error('not now'));
    await expect(remove()).rejects.toThrow();
    expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['done', id]);
    test.identity.before = async () => undefined;
    await test.sweepAll();
    expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
    await holds({ states: ['replaced', 'replaced'], objects: 0, notes: 0 });
  });

  it('does not wait for a store that hangs', async () => {
    await test.upload(accountId, test.image);
    const remove = () => new Promise<never>(() => undefined);
    const { ctx } = test.connect({ changeStore: () => ({ remove }) });
    await removeAvatar({ ...test.ctx, store: ctx.store, origin: SERVICE_ORIGIN }, accountId);
    expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
  });
});

describe('a worker', () => {
  const makeWith = (ctx: Partial<MakeContext>, id: string) => makeAvatar({ ...test.ctx, ...ctx }, id);

  it('finishes what another began that was killed once identity knew of it', async () => {
    const id = await queueUpload();
    const informed = Promise.withResolvers<void>();
    const setAvatar: MakeContext['setAvatar'] = async (avatar) => {
      await test.ctx.setAvatar(avatar);
      informed.resolve();
      return new Promise<never>(() => undefined);
    };
    void makeWith({ setAvatar }, id);
    await informed.promise;
    expect((await holdings()).states).toEqual(['stored']);
    await makeAvatar(test.ctx, id);
    expect([await currentAvatar(), test.identity.avatarOf(accountId)]).toEqual([id, id]);
    await holds(ONE);
  });

  it('removes the image of an upload that was abandoned meanwhile', async () => {
    const id = await queueUpload();
    const convert = async () => {
      await endWaiting(test.ctx.db, id, 'abandoned');
      return test.ctx.decoders.convert({ base64: '' });
    };
    await makeWith({ decoders: { ...test.ctx.decoders, convert } }, id);
    await holds(nothing('abandoned'));
  });
});

describe('with a failing dependency,', () => {
  it('a full store: an upload ends with 503 and leaves nothing', async () => {
    expect(await reasonOf(withStore({ put: fail }).upload(accountId, test.image))).toBe('dependency_unavailable');
    await test.sweepAll();
    await holds(nothing());
  });

  it('a store that removes nothing: uploads succeed, and the sweeper removes what is left', async () => {
    const { upload } = withStore({ remove: fail });
    await upload(accountId, test.image);
    await upload(accountId, test.image);
    expect((await holdings()).objects).toBe(4);
    await test.sweepAll();
    await holds(ONE);
  });

  it('identity: an upload has an unknown outcome, the avatar stays, and the sweeper records the new one', async () => {
    const id = await test.upload(accountId, test.image);
    test.identity.before = fail;
    const { upload } = test.connect({ limits: { waitMs: 500 } });
    expect(await reasonOf(upload(accountId, test.image))).toBe('outcome_unknown');
    expect(await currentAvatar()).toBe(id);
    test.identity.before = async () => undefined;
    await test.sweepAll();
    expect(await currentAvatar()).toBe(test.identity.avatarOf(accountId));
    expect(await currentAvatar()).not.toBe(id);
    expect(await holdings()).toMatchObject({ objects: 1, notes: 0 });
  });

  it('identity without the account: an upload ends with 404 and leaves nothing', async () => {
    const definition = { kind: 'not_found', message: 'Not found' } as const;
    test.identity.before = () => Promise.reject(toConnectError(new DomainError('account_not_found', definition)));
    expect(await reasonOf(test.upload(accountId, test.image))).toBe('avatar_not_found');
    await holds(nothing('refused'));
  });

  it('a frozen database: a waiting upload has an unknown outcome within 5 s', async () => {
    const proxy = await startTcpProxy(test.files.url);
    onTestFinished(() => proxy.close());
    const queued = Promise.withResolvers<void>();
    const { upload } = test.connect({ url: proxy.url, enqueue: async () => queued.resolve() });
    const reason = reasonOf(upload(accountId, test.image));
    await queued.promise;
    proxy.freeze();
    const startedAt = performance.now();
    expect(await reason).toBe('outcome_unknown');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await proxy.restore();
    await test.sweepAll();
    await eventually(async () => expect(await holdings()).toMatchObject({ objects: 0, notes: 0 }));
  });
});
