import { PassThrough, Readable } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { commonErrors, toConnectError } from '@latchkey/kit/errors/errors';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { afterEach, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { type InstanceOptions, useTestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, NOTHING, ONE, reasonOf, setDeadline, sweepAll } from '../../testing/uploads.ts';
import { cleanUpApplication } from '../application/deleted-application.ts';

const files = useTestFiles();
const SOME = Buffer.from('some bytes');
const PENDING = { ...NOTHING, pending: 1 };

/** An instance whose store behaves differently. */
const withStore = (changeStore: InstanceOptions['changeStore'], url = files.url) =>
  createUploads(files.connect({ url, changeStore }).ctx);

const fail = async () => {
  throw new Error('no space left');
};
const hang = () => new Promise<never>(() => undefined);

describe('a store that fails', () => {
  it('leaves nothing, whenever it fails and even if it finishes later, and frees the lease', async () => {
    const ref = files.createOwned();
    let finish = async () => {};
    const late = withStore((store) => ({
      async put(key, body, signal) {
        const bytes = await Readable.from(body).toArray();
        finish = () => store.put(key, Readable.from(bytes), signal);
        await fail();
      },
    }));
    expect(await reasonOf(late.upload(ref, SOME, { name: 'again' }))).toBe('dependency_unavailable');
    await finish();
    expect(await holdingsOf(files, ref)).toEqual({ ...PENDING, objects: 1 });
    await sweepAll(files, ref);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
    await createUploads(files.ctx).upload(ref, SOME, { name: 'again' });
  });

  it('to remove what it stored leaves that to the sweeper, and frees the lease', async () => {
    const ref = files.createOwned();
    const uploads = withStore((store) => ({ put: (...args) => store.put(...args).then(fail), remove: fail }));
    expect(await reasonOf(uploads.upload(ref, SOME))).toBe('dependency_unavailable');
    expect(await holdingsOf(files, ref)).toEqual({ ...PENDING, objects: 1 });
    await createUploads(files.ctx).upload(ref, SOME);
    await sweepAll(files, ref);
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });

  it.each([
    ['to stop at the deadline', { put: hang }, 'upload_timeout'],
    ['to respond to a removal', { put: fail, remove: hang }, 'dependency_unavailable'],
  ])('%s does not delay the response', async (_what, methods, reason) => {
    const ref = files.createOwned();
    const uploads = withStore(() => methods);
    const ticket = await uploads.begin(ref);
    await setDeadline(files, ref, 0);
    const startedAt = performance.now();
    expect(await reasonOf(uploads.send(ticket, SOME))).toBe(reason);
    expect(performance.now() - startedAt).toBeLessThan(4_000);
    expect(await holdingsOf(files, ref)).toEqual(PENDING);
    await createUploads(files.ctx).upload(ref, SOME);
  });
});

describe('an apps service', () => {
  afterEach(() => files.apps.failWith(undefined));

  /** Begins an upload, then has the apps service fail, and sends the bytes. */
  async function sendWhileFailing(failure: Error, deadlineMs = 180_000) {
    const ref = files.createOwned();
    const uploads = createUploads(files.ctx);
    const ticket = await uploads.begin(ref);
    await setDeadline(files, ref, deadlineMs);
    files.apps.failWith(failure);
    const queriesBefore = files.apps.requestIds.length;
    const sent = uploads.send(ticket, SOME);
    sent.catch(() => undefined);
    return { ref, sent, queries: () => files.apps.requestIds.length - queriesBefore };
  }
  const unreachable = new ConnectError('connection refused', Code.Unavailable);

  it('that restarts at the end of an upload is waited for', async () => {
    const { ref, sent, queries } = await sendWhileFailing(unreachable);
    await eventually(() => expect(queries()).toBeGreaterThan(1));
    files.apps.failWith(undefined);
    await sent;
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });

  it('that is away until the deadline fails the upload, which leaves nothing', async () => {
    const { ref, sent, queries } = await sendWhileFailing(unreachable, 2_500);
    expect(await reasonOf(sent)).toBe('dependency_unavailable');
    expect(queries()).toBeGreaterThan(1);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('that responds with an error is queried once', async () => {
    const { sent, queries } = await sendWhileFailing(toConnectError(commonErrors.dependency_unavailable()));
    expect(await reasonOf(sent)).toBe('dependency_unavailable');
    expect(queries()).toBe(1);
  });
});

describe('a database', () => {
  it('that is lost with the response to a commit does not fail a stored file', async () => {
    const proxy = await startTcpProxy(files.url);
    const ref = files.createOwned();
    const uploads = createUploads(files.connect({ url: proxy.url }).ctx);
    const ticket = await uploads.begin(ref);
    proxy.loseAnswerTo('commit');
    await uploads.send(ticket, SOME);
    expect(await holdingsOf(files, ref)).toEqual(ONE);
    await proxy.close();
  });

  it('that cannot say whether it stored the file leaves everything to the sweeper', async () => {
    const ref = files.createOwned();
    const ticket = await createUploads(files.ctx).begin(ref);
    const unsettled = createUploads({ ...files.ctx, findOwned: () => Promise.reject(commonErrors.outcome_unknown()) });
    expect(await reasonOf(unsettled.send(ticket, SOME))).toBe('outcome_unknown');
    expect(await holdingsOf(files, ref)).toEqual({ ...PENDING, objects: 1 });
    await sweepAll(files, ref);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('that is lost before the commit leaves a rest that the sweeper removes', async () => {
    const proxy = await startTcpProxy(files.url);
    const ref = files.createOwned();
    const uploads = withStore((store) => ({ put: (...args) => store.put(...args).then(() => proxy.cut()) }), proxy.url);
    expect(await reasonOf(uploads.upload(ref, SOME))).toBe('dependency_unavailable');
    expect(await holdingsOf(files, ref)).toEqual({ ...PENDING, objects: 1 });
    await sweepAll(files, ref);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('that rejects a row of the commit leaves nothing', async () => {
    const ref = files.createOwned();
    const upload = () => createUploads(files.ctx).upload(ref, SOME);
    await whileFailing(files.db, { table: 'application_usage' }, () => expect(upload()).rejects.toThrow('rejected by the test'));
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});

describe('while bytes come', () => {
  const takeName = (ref: OwnedRef) => storeFile(files, ref, { name: 'wanted' });
  const deleteInApps = async ({ applicationId }: OwnedRef) => files.apps.delete(applicationId);
  const cleanUp = (ref: OwnedRef) => cleanUpApplication(files.ctx, ref, () => undefined);

  it.each([
    ['the name is taken', takeName, 'file_name_taken', ONE],
    ['the application is deleted', deleteInApps, 'application_not_found', NOTHING],
    ['the deletion of the application arrives', cleanUp, 'application_not_found', NOTHING],
  ] as const)('%s: the upload is rejected and leaves nothing', async (_what, happen, reason, left) => {
    const ref = files.createOwned();
    const body = new PassThrough();
    const sending = reasonOf(createUploads(files.ctx).upload(ref, body, { name: 'wanted' }));
    body.write(SOME);
    await eventually(async () => (await holdingsOf(files, ref)).objects === 1);
    await happen(ref);
    body.end();
    expect(await sending).toBe(reason);
    expect(await holdingsOf(files, ref)).toEqual(left);
  });

  it('the deletion of the application arrives: an upload that stalls ends when its lease is renewed', async () => {
    const ref = files.createOwned();
    const { upload } = createUploads(files.connect({ limits: { uploadLeaseMs: 300 } }).ctx);
    const body = new PassThrough();
    const sending = reasonOf(upload(ref, body));
    body.write(SOME);
    await eventually(async () => (await holdingsOf(files, ref)).objects === 1);
    await cleanUp(ref);
    expect(await sending).toBe('application_not_found');
    expect(body.destroyed).toBe(false);
  });
});
