import { Readable } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import { commonErrors, toConnectError } from '@latchkey/kit/errors';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, NOTHING, reasonOf } from '../../testing/uploads.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { sweepAbandonedUploads } from '../sweep/sweep.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const SOME = Buffer.from('some bytes');
const ONE = { files: 1, intents: 0, fileCount: 1, chargedMib: 1, objects: 1 };
const sweep = () => sweepAbandonedUploads(files.ctx, new AbortController().signal);

/** An instance whose store behaves otherwise in some method. */
const withStore = (change: (store: ObjectStore) => Partial<ObjectStore>) =>
  createUploads(files.connect({ aroundStore: (store) => ({ ...bound(store), ...change(store) }) }).ctx);

function bound(store: ObjectStore): ObjectStore {
  return {
    put: (...args) => store.put(...args),
    read: (...args) => store.read(...args),
    localPath: (key) => store.localPath(key),
    stat: (...args) => store.stat(...args),
    remove: (...args) => store.remove(...args),
    list: () => store.list(),
    createDownloadUrl: (...args) => store.createDownloadUrl(...args),
    check: () => store.check(),
    close: () => store.close(),
  };
}

const fail = async () => {
  throw new Error('no space left');
};

const endLease = (ref: OwnedRef) =>
  files.db.query(`update upload_intent set lease_until = now() - interval '1 s' where account_id = $1`, [ref.accountId]);

/** Has an upload fail at a store that has not finished; what is answered finishes it. */
async function failBeforeTheEnd(ref: OwnedRef): Promise<() => Promise<void>> {
  let finish = async () => {};
  const uploads = withStore((store) => ({
    async put(key, body, signal) {
      const bytes = await Readable.from(body).toArray();
      finish = () => store.put(key, Readable.from(bytes), signal);
      await fail();
    },
  }));
  expect(await reasonOf(uploads.upload(ref, SOME))).toBe('dependency_unavailable');
  return finish;
}

describe('a store that fails', () => {
  it('before anything is stored leaves nothing, and the account may upload again at once', async () => {
    const ref = files.createOwned();
    const uploads = withStore(() => ({ put: fail }));
    expect(await reasonOf(uploads.upload(ref, SOME, { name: 'again' }))).toBe('dependency_unavailable');
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1 });
    await createUploads(files.ctx).upload(ref, SOME, { name: 'again' });
  });

  it('after the object is stored leaves nothing', async () => {
    const ref = files.createOwned();
    const uploads = withStore((store) => ({ put: (...args) => store.put(...args).then(fail) }));
    expect(await reasonOf(uploads.upload(ref, SOME))).toBe('dependency_unavailable');
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1 });
    await sweep();
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1 });
    await endLease(ref);
    await sweep();
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('and finishes late all the same is looked at again', async () => {
    const ref = files.createOwned();
    const finish = await failBeforeTheEnd(ref);
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1 });
    await finish();
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
    await endLease(ref);
    await sweep();
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('to remove what it stored is tidied by the sweeper, and the account may upload again at once', async () => {
    const ref = files.createOwned();
    const uploads = withStore((store) => ({ put: (...args) => store.put(...args).then(fail), remove: fail }));
    expect(await reasonOf(uploads.upload(ref, SOME, { name: 'again' }))).toBe('dependency_unavailable');
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
    await createUploads(files.ctx).upload(ref, SOME, { name: 'again' });
    await sweep();
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });

  it('to leave off at the deadline does not hold up the one who is told so, and is looked at again', async () => {
    const ref = files.createOwned();
    const uploads = withStore((store) => ({ put: () => new Promise(() => undefined), close: () => store.close() }));
    const ticket = await uploads.begin(ref);
    await files.db.query(`update upload_intent set deadline_at = now() where account_id = $1`, [ref.accountId]);
    expect(await reasonOf(uploads.send(ticket, SOME))).toBe('upload_timeout');
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1 });
    await createUploads(files.ctx).upload(ref, SOME);
  });

  it('to answer a removal does not hold up the one who is refused', async () => {
    const ref = files.createOwned();
    const uploads = withStore((store) => ({ put: fail, remove: () => new Promise(() => undefined), close: () => store.close() }));
    const startedAt = performance.now();
    expect(await reasonOf(uploads.upload(ref, SOME))).toBe('dependency_unavailable');
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });
});

describe('an apps service', () => {
  const unreachable = new ConnectError('connection refused', Code.Unavailable);
  const answered = toConnectError(commonErrors.dependency_unavailable());

  /** Begins an upload, then has the apps service fail, and sends the bytes. */
  async function sendWhileFailing(failure: Error, deadlineMs?: number) {
    const ref = files.createOwned();
    const uploads = createUploads(files.ctx);
    const ticket = await uploads.begin(ref);
    if (deadlineMs !== undefined) {
      const text = `update upload_intent set deadline_at = now() + $2 * interval '1 ms' where account_id = $1`;
      await files.db.query(text, [ref.accountId, deadlineMs]);
    }
    files.apps.failWith(failure);
    const questionsBefore = files.apps.requestIds.length;
    const sent = uploads.send(ticket, SOME);
    sent.catch(() => undefined);
    return { ref, sent, questions: () => files.apps.requestIds.length - questionsBefore };
  }
  afterEach(() => files.apps.failWith(undefined));

  it('that restarts at the end of an upload is waited for', async () => {
    const { ref, sent, questions } = await sendWhileFailing(unreachable);
    await eventually(() => expect(questions()).toBeGreaterThan(1));
    files.apps.failWith(undefined);
    expect((await sent).byteSize).toBe(BigInt(SOME.byteLength));
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });

  it('that stays away until the deadline fails the upload, which leaves nothing', async () => {
    const { ref, sent, questions } = await sendWhileFailing(unreachable, 600);
    expect(await reasonOf(sent)).toBe('dependency_unavailable');
    expect(questions()).toBeGreaterThan(1);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('that answers with an error is asked once', async () => {
    const { sent, questions } = await sendWhileFailing(answered);
    expect(await reasonOf(sent)).toBe('dependency_unavailable');
    expect(questions()).toBe(1);
  });
});

describe('a database that is lost', () => {
  it('with the answer to a commit does not make a stored file fail', async () => {
    const proxy = await startTcpProxy(files.url);
    const ref = files.createOwned();
    const uploads = createUploads(files.connect({ url: proxy.url }).ctx);
    const ticket = await uploads.begin(ref);
    proxy.loseAnswerTo('commit');
    const answer = await uploads.send(ticket, SOME);
    expect(answer.byteSize).toBe(BigInt(SOME.byteLength));
    expect(await holdingsOf(files, ref)).toEqual(ONE);
    await proxy.close();
  });

  it('before the commit leaves a rest that the sweeper removes', async () => {
    const proxy = await startTcpProxy(files.url);
    const ref = files.createOwned();
    const uploads = createUploads(
      files.connect({
        url: proxy.url,
        aroundStore: (store) => ({ ...bound(store), put: (...args) => store.put(...args).then(() => proxy.cut()) }),
      }).ctx,
    );
    expect(await reasonOf(uploads.upload(ref, SOME))).toBe('dependency_unavailable');
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, intents: 1, objects: 1 });
    await endLease(ref);
    await sweep();
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});

describe('a database that refuses', () => {
  it.each(['file', 'application_usage'])('a row of %s leaves nothing', async (table) => {
    const ref = files.createOwned();
    await files.db.query(
      `create or replace function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`,
    );
    await files.db.query(
      `create trigger refuse before insert on ${table} for each row when (new.application_id = '${ref.applicationId}')
        execute function refuse()`,
    );
    const outcome = await createUploads(files.ctx)
      .upload(ref, SOME)
      .catch((err: unknown) => err);
    expect(outcome).toMatchObject({ message: 'refused' });
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
    await files.db.query(`drop trigger refuse on ${table}`);
  });
});
