import { hash } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { Api } from '../client/api.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { ACTION, listFiles, MIB } from '../client/files.ts';
import { SeededRandom } from '../client/random.ts';
import { uploadHead } from '../client/routes.ts';
import { workUnderKills } from './kills.ts';
import { randomBytes } from './load-driver.ts';
import { createRepeater, isPassing, RESPONSE_MS_MAX, Tally } from './repeater.ts';
import { describeOutcome, isLost, Violation } from './request.ts';
import { checkBytes, readStoredState } from './stored-state.ts';
import type { Target } from './target.ts';

const UPLOADS = '/api/v1/panel/uploads';
const TUS = { 'tus-resumable': '1.0.0' };
/** Parts of S3 have 5 MiB, and bytes are recorded every 10 MiB. */
const SIZES_MAX = [16, 64 * 1024, MIB, 12 * MIB];
/** Together with a further upload, the storage of the account. */
const FILES_MIB_MAX = 8;
const LEFT_MIB_MAX = 12;
/** Objects of a killed process are removed after 60 s, and sweepers run every 30 s. */
const SETTLE_MS_MAX = 150_000;

/** End of an upload: one in eight is left, ended, or announced with another digest. */
type Fate = 'stored' | 'left' | 'ended' | 'removed';

interface Upload {
  readonly id: string;
  readonly bytes: Buffer;
  readonly fate: Fate;
  /** Bytes that the service has acknowledged. */
  acknowledged: number;
}

interface Stored {
  readonly id: string;
  readonly name: string;
  readonly byteSize: number;
  readonly checksum: string;
}

const sumMib = (byteSizes: readonly number[]) => byteSizes.reduce((sum, size) => sum + Math.max(1, size / MIB), 0);

/** A client of an account that uploads files in chunks, which break off at random offsets. */
async function startCutClient(target: Target, seed: number, tally: Tally) {
  const owner = await signUp(new Api(target.baseUrl));
  const [{ session }, { api }] = [owner, await createKey(owner)];
  const applicationId = await createApplication(api);
  const random = new SeededRandom(seed);
  const repeater = createRepeater(target.baseUrl, random, tally);
  const stored: Stored[] = [];
  const left: Upload[] = [];
  let serial = 0;

  /** Uploads a file. @throws {Violation} */
  async function uploadFile(): Promise<void> {
    const bytes = randomBytes(random, 1 + random.below(random.pick(SIZES_MAX)));
    const fates: readonly Fate[] = ['left', 'ended', 'removed'];
    // An account has four unfinished uploads, which reserve storage.
    const mayLeave = left.length < 3 && sumMib([...left.map(({ bytes: { length } }) => length), bytes.length]) <= LEFT_MIB_MAX;
    const fate = (mayLeave ? fates : fates.slice(1))[random.below(24)] ?? 'stored';
    serial += 1;
    const name = `f-${serial}`;
    const checksum = hash('sha256', bytes);
    const sha256 = fate === 'removed' ? hash('sha256', name) : checksum;
    const head = uploadHead(applicationId, name, bytes.length, fate === 'removed' || random.oneIn(2) ? { sha256 } : {});
    const created = await change({ method: 'POST', path: UPLOADS, headers: head });
    const upload: Upload = { id: created.data.id, bytes, fate, acknowledged: 0 };
    await sendChunks(upload);
    if (fate === 'stored') stored.push({ id: upload.id, name, byteSize: bytes.length, checksum });
    if (fate === 'left') left.push(upload);
    if (fate === 'ended') await change({ method: 'DELETE', path: `${UPLOADS}/${upload.id}`, headers: TUS });
    while (sumMib(stored.map(({ byteSize }) => byteSize)) > FILES_MIB_MAX) await deleteFile();
  }

  /** Sends chunks until the upload is stored or removed, or as far as it is to come. */
  async function sendChunks(upload: Upload): Promise<void> {
    const { id, bytes, fate } = upload;
    const end = fate === 'left' || fate === 'ended' ? random.below(bytes.length) : bytes.length;
    let progressedAt = performance.now();
    while (upload.acknowledged < end) {
      const byteOffset = await readOffset(upload);
      if (byteOffset > upload.acknowledged) progressedAt = performance.now();
      upload.acknowledged = byteOffset;
      if (byteOffset >= end) return;
      const chunk = bytes.subarray(byteOffset, random.oneIn(2) ? end : byteOffset + 1 + random.below(end - byteOffset));
      const outcome = await repeater.attempt(
        {
          ...{ method: 'PATCH', path: `${UPLOADS}/${id}`, body: chunk },
          headers: {
            ...api.headers,
            ...TUS,
            'content-type': 'application/offset+octet-stream',
            'upload-offset': `${byteOffset}`,
          },
        },
        random.oneIn(2) ? repeater.drawCut(random.below(chunk.length + 1)) : undefined,
      );
      if (performance.now() - progressedAt > RESPONSE_MS_MAX)
        throw new Violation(`Upload ${id} does not go on: ${describeOutcome(outcome)}`);
      if (!isLost(outcome) && outcome.status === 204) acknowledge(upload, outcome.headers, byteOffset + chunk.length);
      // The end of the chunk before was not noticed yet.
      else if (isPassing(outcome) || (!isLost(outcome) && (outcome.status === 409 || outcome.status === 423)))
        await repeater.wait();
      else if (fate === 'removed' && describeOutcome(outcome) === '460 invalid_file') return;
      // A repetition after the response was lost.
      else if (fate === 'removed' && describeOutcome(outcome) === '410 not_found') return;
      else throw new Violation(`A chunk of ${id} had the response ${describeOutcome(outcome)}`);
    }
  }

  function acknowledge(upload: Upload, headers: Headers, expected: number): void {
    const byteOffset = Number(headers.get('upload-offset'));
    if (byteOffset !== expected) throw new Violation(`${upload.id} is at ${byteOffset} after a chunk up to ${expected}`);
    const checksum = headers.get('x-file-checksum');
    if (byteOffset === upload.bytes.length && checksum !== hash('sha256', upload.bytes))
      throw new Violation(`Other bytes were stored: ${upload.id} has ${checksum}`);
    upload.acknowledged = byteOffset;
  }

  /**
   * The offset that the service has; the length of an upload that was removed.
   * @throws {Violation}
   */
  async function readOffset(upload: Upload): Promise<number> {
    const { id, acknowledged, bytes, fate } = upload;
    const startedAt = performance.now();
    for (;;) {
      const sent = { method: 'GET', path: `${UPLOADS}/${id}`, headers: { ...api.headers, ...TUS } };
      const outcome = await repeater.attempt(sent);
      if (isLost(outcome) || isPassing(outcome) || outcome.status === 423) {
        if (performance.now() - startedAt > RESPONSE_MS_MAX)
          throw new Violation(`Upload ${id} has no offset: ${describeOutcome(outcome)}`);
        await repeater.wait();
        continue;
      }
      const isRemoved = outcome.status === 410 || outcome.status === 460;
      if (fate === 'removed' && isRemoved) return bytes.length;
      if (outcome.status !== 200) throw new Violation(`Upload ${id} had the response ${describeOutcome(outcome)}`);
      const byteOffset = Number(outcome.headers.get('upload-offset'));
      if (byteOffset < acknowledged) throw new Violation(`Upload ${id} lost bytes: ${byteOffset} after ${acknowledged}`);
      if (byteOffset === bytes.length) acknowledge(upload, outcome.headers, byteOffset);
      return byteOffset;
    }
  }

  async function deleteFile(): Promise<void> {
    const [file] = stored.splice(random.below(stored.length), 1);
    const query = { applicationId: applicationId };
    await change({ method: 'POST', path: ACTION, query, body: { action: 'delete_file', fileId: file?.id } });
  }

  function change(sent: {
    method: string;
    path: string;
    query?: Record<string, string>;
    body?: object;
    headers?: Record<string, string>;
  }) {
    return repeater.change({ ...sent, headers: { ...api.headers, ...sent.headers } });
  }

  /** Checks what was left, before it expires. @throws {Violation} */
  async function verifyLeft(): Promise<void> {
    for (const upload of left) await readOffset(upload);
    const { data } = await session.get(UPLOADS);
    const ids = (uploads: readonly { readonly id: string }[]) => uploads.map(({ id }) => id).sort();
    if (ids(data).join() !== ids(left).join()) throw new Violation(`Unfinished are ${ids(data)} instead of ${ids(left)}`);
  }

  /**
   * Compares the files with those that were uploaded, and the usage with theirs.
   * @throws {Violation}
   */
  async function verify(): Promise<void> {
    const rows = await listFiles(session, applicationId);
    const describe = (all: readonly Stored[]) =>
      all.map(({ id, name, byteSize, checksum }) => `${id} ${name} ${byteSize} ${checksum}`).sort();
    const [found, expected] = [describe(rows.map((row) => ({ ...row, name: row.displayName }))), describe(stored)];
    if (found.join('\n') !== expected.join('\n'))
      throw new Violation(`Files are\n${found.join('\n')}\ninstead of\n${expected.join('\n')}`);
    const { data } = await session.get('/api/v1/panel/get-account-limits');
    const { storageSizeMib, uploadedFilesCount } = data;
    const mib = rows.reduce((sum, { byteSize }) => sum + Math.max(1, Math.floor(byteSize / MIB)), 0);
    if (uploadedFilesCount.currentValue !== rows.length || storageSizeMib.currentValue !== mib)
      throw new Violation(`${rows.length} files of ${mib} MiB are charged as ${JSON.stringify(data)}`);
  }

  return { uploadFile, verifyLeft, verify };
}

interface CutOptions {
  readonly seed: number;
  readonly uploads: number;
  readonly clients: number;
}

/**
 * Has clients upload files in chunks that break off, while everything is killed, and checks that no
 * acknowledged byte is lost. After the expiry of those that were left, nothing of them stays.
 *
 * @throws {Violation}
 */
export async function cutUploads(
  target: Target,
  { seed, uploads, clients: clientCount }: CutOptions,
): Promise<Tally & { readonly kills: Record<string, number> }> {
  const random = new SeededRandom(seed);
  const tally = new Tally();
  const clients = await Promise.all(
    Array.from({ length: clientCount }, () => startCutClient(target, random.below(2 ** 31), tally)),
  );
  let begun = 0;
  const step = async (client: Awaited<ReturnType<typeof startCutClient>>) => {
    if (begun >= uploads) return false;
    begun += 1;
    await client.uploadFile();
    return true;
  };
  const kills = await workUnderKills(target, random, clients, step);
  for (const client of clients) await client.verifyLeft();
  await withClient(await target.databaseUrl(), (database) =>
    database.query("update files.resumable_upload set expires_at = now() - interval '1 second' where state = 'open'"),
  );
  for (const client of clients) await client.verify();
  await withClient(await target.databaseUrl(), async (database) => {
    const check = async () => {
      const found = await readStoredState(database, target.store, []);
      if (found.disagreements.length > 0) throw new Violation(found.disagreements.join('\n'));
      return found;
    };
    const { rows } = await eventually(check, { timeoutMs: SETTLE_MS_MAX, intervalMs: 1_000 });
    await checkBytes(rows, target.store);
  });
  return { ...tally, kills };
}
