import { newId } from '@latchkey/kit/validation/id';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Appended, LostBytesError, type ObjectStore, type StoredObject } from '../../storage/object-store/object-store.ts';
import { BodyFailure, bodyOf, collect, newKey, someBytes } from './bodies.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
/** Bytes read before a fault: none, a little of the first part, and more than that part. */
const STAGES = [0, 64 * KIB, 7 * MIB];

/** A store, and what the suite needs of its surroundings. */
export interface StoreUnderTest {
  readonly store: ObjectStore;
  /** Another one on the same objects, as another process has it. */
  readonly sameStore: ObjectStore;
  /** Leaves what a process killed while writing leaves; absent where it can't be listed. */
  readonly leaveUnfinished?: ((key: string) => Promise<unknown>) | undefined;
  close(): Promise<unknown>;
}

/** The contract of every object store (object-store.ts), on a real and empty one. */
export function describeObjectStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(name, () => {
    let opened: StoreUnderTest;
    let store: ObjectStore;
    const never = new AbortController().signal;
    const put = (key: string, bytes: Uint8Array) => store.put(key, bodyOf(bytes), never);
    const expectNothing = async (key: string) =>
      expect([await store.stat(key), await listOf(opened.sameStore, key)]).toEqual([undefined, []]);
    beforeAll(async () => {
      opened = await open();
      store = opened.store;
    });
    afterAll(() => opened?.close());

    it.each([1, 5 * MIB, 12 * MIB + 1])('stores %i bytes until they are removed', async (size) => {
      const key = newKey();
      const bytes = someBytes(size);
      await put(key, bytes);
      expect(await store.stat(key)).toEqual({ byteSize: size });
      expect((await collect(await store.read(key))).equals(bytes)).toBe(true);
      expect(await listOf(opened.sameStore, key)).toEqual([{ key, byteSize: size, unfinished: false }]);
      await opened.sameStore.remove(key);
      expect(await store.read(key)).toBeUndefined();
      await expectNothing(key);
    });

    describe('an appended object', () => {
      const NEW = { byteSize: 0, state: {} };
      const writer = (isContested = false) => ({ writerId: newId(), isContested });
      const append = (key: string, from: Appended, bytes: Uint8Array, isContested = false) =>
        store.append(key, from, bodyOf(bytes), never, writer(isContested));
      /** As a row has it. */
      const recorded = (appended: Appended): Appended => JSON.parse(JSON.stringify(appended));
      const removeAll = async (key: string, ...states: Appended[]) => {
        const tails = states.flatMap(({ state: { tail } }) => (tail ? [`${key.split('/')[0]}/${tail}`] : []));
        await store.remove(key, ...tails);
      };

      it.each([
        [1, 2],
        [5 * MIB, 5 * MIB],
        [3 * MIB, 3 * MIB, 5 * MIB, 0, 7],
        [11 * MIB, 1],
      ])('has the bytes of each append: %i, %i, …', async (...sizes) => {
        const key = newKey();
        const bytes = someBytes(sizes.reduce((sum, size) => sum + size, 0));
        const states: Appended[] = [NEW];
        for (const size of sizes) {
          const from = states.at(-1) as Appended;
          states.push(recorded(await append(key, from, bytes.subarray(from.byteSize, from.byteSize + size))));
        }
        const whole = states.at(-1) as Appended;
        expect(whole.byteSize).toBe(bytes.length);
        await opened.sameStore.publish(key, whole);
        // After a commit that failed.
        await store.publish(key, whole);
        expect(bytes.equals(await collect(await store.read(key)))).toBe(true);
        await removeAll(key, ...states);
        await expectNothing(key);
      });

      it('overwrites what was not recorded, and is not damaged by an earlier writer', async () => {
        const key = newKey();
        const bytes = someBytes(12 * MIB);
        const first = await append(key, NEW, bytes.subarray(0, 6 * MIB));
        const lost = await append(key, first, someBytes(6 * MIB));
        const release = Promise.withResolvers<void>();
        async function* late() {
          await release.promise;
          yield someBytes(6 * MIB);
        }
        const stale = opened.sameStore.append(key, first, late(), never, writer());
        const whole = await append(key, first, bytes.subarray(6 * MIB), true);
        release.resolve();
        const ignored = await stale.catch(() => NEW);
        await store.publish(key, whole);
        expect(bytes.equals(await collect(await store.read(key)))).toBe(true);
        await removeAll(key, first, lost, ignored, whole);
        await expectNothing(key);
      });

      it.each([false, true])(
        'overwrites what was not recorded after an append of no bytes (contested: %s)',
        async (isContested) => {
          const key = newKey();
          const bytes = someBytes(2 * MIB);
          const first = recorded(await append(key, NEW, new Uint8Array(0)));
          const lost = await append(key, first, someBytes(3 * MIB));
          const whole = await append(key, first, bytes, isContested);
          await store.publish(key, whole);
          expect(bytes.equals(await collect(await store.read(key)))).toBe(true);
          await removeAll(key, lost, whole);
          await expectNothing(key);
        },
      );

      it('is rejected where its bytes are lost', async () => {
        const key = newKey();
        for (const size of [1, 6 * MIB]) {
          const appended = await append(key, NEW, someBytes(size));
          await removeAll(key, appended);
          await expect(append(key, appended, someBytes(6 * MIB))).rejects.toThrow(LostBytesError);
          await expect(store.publish(key, appended)).rejects.toThrow(LostBytesError);
        }
        await removeAll(key);
        await expectNothing(key);
      });

      it('is listed as unfinished until it is published, and fails as its store does', async () => {
        const key = newKey();
        const appended = await append(key, NEW, someBytes(5 * MIB));
        if (opened.leaveUnfinished) expect(await listOf(store, key)).toMatchObject([{ key, unfinished: true }]);
        const controller = new AbortController();
        async function* hanging() {
          yield someBytes(1);
          controller.abort(new Error('stopped'));
          await new Promise(() => undefined);
        }
        await expect(store.append(key, appended, hanging(), controller.signal, writer())).rejects.toThrow('stopped');
        await removeAll(key, appended);
        await expectNothing(key);
      });
    });

    it('takes chunks of every size, and reads any range, cut at the end of the object', async () => {
      const key = newKey();
      const bytes = someBytes(6 * MIB);
      const cuts = [0, 1, 1, 4_096, 5 * MIB - 1, 5 * MIB, 5 * MIB + 1, bytes.length];
      async function* chunks() {
        for (const [index, cut] of cuts.entries()) yield bytes.subarray(cuts[index - 1] ?? 0, cut);
      }
      await store.put(key, chunks(), never);
      const last = bytes.length - 1;
      for (const [start, end] of [
        [0, 0],
        [0, last],
        [5 * MIB - 2, 5 * MIB + 2],
        [last - 1, last + 10],
        [last + 1, last + 1],
        [last + 100, last + 200],
      ] as const) {
        const read = await collect(await store.read(key, { start, end }));
        expect(read.equals(bytes.subarray(start, end + 1)), `${start}-${end}`).toBe(true);
      }
      expect(await store.read(newKey(), { start: 100, end: 200 })).toBeUndefined();
      const stopped = await store.read(key);
      const closed = new Promise((resolve) => stopped?.once('close', resolve));
      stopped?.destroy();
      await closed;
    });

    it('removes several objects, of one folder and of others, missing ones too, and no other', async () => {
      const first = newKey();
      const [folder = ''] = first.split('/');
      const keys = [first, newKey(folder), newKey()];
      const kept = newKey(folder);
      for (const key of [...keys, kept]) await store.put(key, bodyOf(someBytes(7)), never, { durable: false });
      await store.remove(...keys, newKey());
      expect(await Promise.all(keys.map((key) => store.stat(key)))).toEqual([undefined, undefined, undefined]);
      expect(await store.stat(kept)).toEqual({ byteSize: 7 });
    });

    it.each(STAGES)('leaves nothing of a body that fails after %i bytes, and rejects with its error', async (length) => {
      const key = newKey();
      await expect(store.put(key, bodyOf(someBytes(length), 'fails'), never)).rejects.toThrow(BodyFailure);
      await expectNothing(key);
    });

    it.each(STAGES)('leaves nothing of an upload that is aborted while its body hangs, after %i bytes', async (length) => {
      const key = newKey();
      const controller = new AbortController();
      const body = bodyOf(someBytes(length), 'hangs');
      const putting = store.put(key, body, controller.signal);
      void body.drained.then(() => controller.abort(new Error('too slow')));
      await expect(putting).rejects.toThrow('too slow');
      await expectNothing(key);
    });

    it.each([64 * KIB, 7 * MIB])('leaves nothing of an upload that is aborted at its end, after %i bytes', async (length) => {
      const key = newKey();
      const controller = new AbortController();
      async function* body() {
        yield* bodyOf(someBytes(length));
        // From here on only the store is waited for.
        setImmediate(() => controller.abort(new Error('too late')));
      }
      await expect(store.put(key, body(), controller.signal)).rejects.toThrow('too late');
      await expectNothing(key);
    });

    it('reads nothing for a signal that has aborted', async () => {
      const body = bodyOf(someBytes(64 * KIB));
      await expect(store.put(newKey(), body, AbortSignal.abort(new Error('stopping')))).rejects.toThrow('stopping');
      expect(body.taken).toBe(0);
    });

    it('removes what a killed process left under a key, and nothing else', async ({ skip }) => {
      if (!opened.leaveUnfinished) return skip('this server does not list unfinished uploads');
      const applicationId = newId();
      const [left, other] = [newKey(applicationId), newKey(applicationId)];
      await Promise.all([opened.leaveUnfinished(left), opened.leaveUnfinished(other), put(newKey(applicationId), someBytes(9))]);
      const before = await listOf(store, applicationId);
      expect(before.filter(({ unfinished }) => unfinished).map(({ key }) => key)).toEqual([left, other].sort());
      expect(await store.stat(left)).toBeUndefined();
      await store.remove(left);
      expect(await listOf(store, applicationId)).toEqual(before.filter(({ key }) => key !== left));
    });

    it.each(['../../etc/passwd', `${newId()}/../x`, newId(), `${newId()}/${newId()}/x`])('rejects the key %j', async (key) => {
      await expect(put(key, someBytes(1))).rejects.toThrow(TypeError);
      for (const method of ['read', 'stat', 'remove'] as const) await expect(store[method](key)).rejects.toThrow(TypeError);
    });
  });
}

/** Objects of an application or of one key in the store, in order. */
export async function listOf(store: ObjectStore, prefix: string): Promise<StoredObject[]> {
  const found: StoredObject[] = [];
  for await (const object of store.list()) if (object.key.startsWith(prefix)) found.push(object);
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}
