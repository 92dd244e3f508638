import { createCipheriv, hash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { shuffle } from '@latchkey/testkit/values/random';
import { plain, UPLOAD_AVATAR } from '../client/avatars.ts';
import { PASSWORD } from '../client/caller.ts';
import { ACTION, TABLE, UPLOAD } from '../client/files.ts';
import type { SeededRandom } from '../client/random.ts';
import { type Account, type Entry, idleEntries, isUsable, newName, usableApplications } from './expected-state.ts';
import { CUTS, type Cut, type FaultRequest, isInDoubt, isLost, type Outcome, Violation } from './request.ts';
import { type Kind, STEPS, type Workload } from './workload.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Largest sizes of files; each upload draws one of them. */
const SIZES_MAX = [16, 64 * KIB, MIB, 4 * MIB];

const APPLICATIONS_MAX = 3;
const WAIT_MS_MAX = 40;
const UNREACHED_WAIT_MS = 200;

/** Every way in which a sender goes away, by whether its body is chunked. */
const ALL_CUTS = CUTS.flatMap((after) =>
  [true, false].flatMap((chunked) => (['FIN', 'RST'] as const).map((by) => ({ chunked, cut: { after, by } satisfies Cut }))),
).filter(({ chunked, cut }) => chunked || cut.after !== 'all but the end mark');

/** Codes that an upload may have, and one whose sender went away. */
const UPLOAD_REFUSALS = ['limit_exceeded', 'rate_limit_reached', 'upload_timeout'];
const CUT_REFUSALS = ['bad_request', 'VALIDATION_ERROR'];
const NEW_ENTRY: Pick<Entry, 'state' | 'busy'> = { state: 'in doubt', busy: true };

const get = { method: 'GET', path: '/api/v1/panel/get-applications' };

/** Client of an account: sends random requests and records their results in the expected state. */
export function createLoadDriver(workload: Workload, account: Account, random: SeededRandom) {
  let cuts: typeof ALL_CUTS = [];

  /** @throws {Violation} on a response that cannot be right */
  async function work(signal: AbortSignal): Promise<void> {
    const steps: Record<Kind, () => Promise<Outcome | undefined>> = {
      upload,
      rename,
      delete: deleteFile,
      application: replaceApplication,
      read,
      write,
      'sign-in': signIn,
      avatar: uploadAvatar,
    };
    const deck = Object.entries(STEPS).flatMap(([kind, share]) => Array<Kind>(share).fill(kind as Kind));
    while (!signal.aborted) {
      const outcome = await steps[random.pick(deck)]();
      if (outcome && isLost(outcome) && outcome.lost === 'ECONNREFUSED') await pause(UNREACHED_WAIT_MS);
      else if (outcome === undefined || isLost(outcome) || outcome.status !== 200) await pause(random.below(WAIT_MS_MAX));
    }
  }

  /** Sends a request, with the account's key unless it has headers. */
  function sendAs(kind: Kind, sent: FaultRequest, refusals: readonly string[] = [], applicationId?: string): Promise<Outcome> {
    const mayBeMissing = () => applicationId !== undefined && !isUsable(account, applicationId);
    return workload.send(kind, account.name, { headers: account.key.headers, ...sent }, { refusals, mayBeMissing });
  }

  async function upload(): Promise<Outcome | undefined> {
    const applications = usableApplications(account);
    if (applications.length === 0) return replaceApplication();
    const { id: applicationId } = random.pick(applications);
    const bytes = randomBytes(random, 1 + random.below(random.pick(SIZES_MAX)));
    const checksum = hash('sha256', bytes);
    const isRight = !random.oneIn(12);
    const { chunked, cut } = random.oneIn(6) ? nextCut() : { chunked: random.oneIn(2), cut: undefined };
    const fileName = newName(account, 'f');
    const entry: Entry = { applicationId, names: [fileName], id: undefined, byteSize: bytes.length, checksum, ...NEW_ENTRY };
    account.entries.push(entry);
    const digest = (isRight ? Buffer.from(checksum, 'hex') : Buffer.alloc(32)).toString('base64');
    const isDigestSent = !isRight || random.oneIn(2);
    const headers = { ...account.key.headers, ...(isDigestSent && { 'content-digest': `sha-256=:${digest}:` }) };
    // Slow ones, so that most faults occur while a body is sent.
    const pace = random.oneIn(3) ? { pieces: 2 + random.below(8), pauseMs: 1 + random.below(60) } : {};
    const target = { method: 'POST', path: UPLOAD, query: { applicationId, fileName } };
    const request = { ...target, headers, body: bytes, chunked, cut, ...pace };
    const refusals = [...UPLOAD_REFUSALS, ...(isRight ? [] : ['invalid_file']), ...(cut ? CUT_REFUSALS : [])];
    const outcome = await sendAs('upload', request, refusals, applicationId);
    recordUpload(entry, outcome, isRight && !cut);
    const isOpen = isLost(outcome) ? outcome.lost !== 'ECONNREFUSED' : isInDoubt(outcome);
    if (isOpen && isRight) account.unanswered.push({ entry, bytes });
    if (!isLost(outcome) && outcome.code === 'limit_exceeded') return deleteFile();
    return outcome;
  }

  function nextCut(): (typeof ALL_CUTS)[number] {
    if (cuts.length === 0) cuts = shuffle(ALL_CUTS, random.below);
    return cuts.pop() as (typeof ALL_CUTS)[number];
  }

  function recordUpload(entry: Entry, outcome: Outcome, mayBeStored: boolean): void {
    entry.busy = false;
    if (isInDoubt(outcome)) return;
    entry.state = 'gone';
    if (isLost(outcome) || outcome.status !== 200) return;
    const { id, byteSize, checksum } = outcome.data;
    if (!mayBeStored) throw new Violation(`A cut or corrupt upload was stored: ${entry.names}`);
    if (byteSize !== entry.byteSize || checksum !== entry.checksum)
      throw new Violation(`Other bytes were stored: ${entry.names}`);
    Object.assign(entry, { id, state: 'there' });
  }

  function rename(): Promise<Outcome | undefined> {
    const fileName = newName(account, 'f');
    return act('rename', { action: 'change_file_name', fileName }, (entry, outcome) => {
      if (isInDoubt(outcome)) entry.names.push(fileName);
      else if (!isLost(outcome) && outcome.status === 200) entry.names = [fileName];
    });
  }

  function deleteFile(): Promise<Outcome | undefined> {
    return act('delete', { action: 'delete_file' }, (entry, outcome) => {
      if (isInDoubt(outcome)) entry.state = 'in doubt';
      else if (!isLost(outcome) && outcome.status === 200) entry.state = 'gone';
    });
  }

  async function act(kind: Kind, action: object, record: (entry: Entry, outcome: Outcome) => void): Promise<Outcome | undefined> {
    const idle = idleEntries(account);
    if (idle.length === 0) return undefined;
    const entry = random.pick(idle);
    entry.busy = true;
    const { applicationId, id } = entry;
    const request = { method: 'POST', path: ACTION, query: { applicationId }, body: { ...action, fileId: id } };
    const outcome = await sendAs(kind, request, [], applicationId);
    entry.busy = false;
    record(entry, outcome);
    return outcome;
  }

  /** Deletes an application, or creates one where there are few. */
  async function replaceApplication(): Promise<Outcome | undefined> {
    const usable = usableApplications(account);
    if (usable.length >= APPLICATIONS_MAX) {
      const application = random.pick(usable);
      application.state = 'in doubt';
      const body = { applicationId: application.id, code: '' };
      const outcome = await sendAs('application', { method: 'DELETE', path: '/api/v1/panel/delete-application', body });
      if (!isInDoubt(outcome)) application.state = isLost(outcome) ? 'there' : 'gone';
      return outcome;
    }
    const name = newName(account, 'application');
    const created = await sendAs('application', { method: 'POST', path: '/api/v1/panel/create-application', body: { name } });
    if (isLost(created) || created.status !== 200) return created;
    const id = new URLSearchParams(created.headers.get('location')?.split('?')[1]).get('applicationId');
    account.applications.push({ id: id ?? '', state: 'there' });
    return created;
  }

  function read(): Promise<Outcome> {
    const query = { applicationId: account.liveId };
    const settings = { method: 'GET', path: '/api/v1/panel/get-application-settings', query };
    return sendAs('read', random.pick([{ method: 'GET', path: TABLE, query }, settings, get]));
  }

  async function write(): Promise<Outcome> {
    const { liveId: applicationId, versions } = account;
    const value = newName(account, 'v');
    const body = { field: 'version', value };
    const outcome = await sendAs('write', {
      method: 'PATCH',
      path: '/api/v1/panel/update-application-settings',
      query: { applicationId },
      body,
    });
    if (!isLost(outcome) && outcome.status === 200) versions.set(value, performance.now());
    return outcome;
  }

  function signIn(): Promise<Outcome> {
    const body = { email: account.owner.email, password: PASSWORD };
    return sendAs('sign-in', { method: 'POST', path: '/api/v1/auth/sign-in', headers: {}, body });
  }

  async function uploadAvatar(): Promise<Outcome> {
    const body = await plain(64, 64).png().toBuffer();
    const { headers } = account.owner.session;
    const outcome = await sendAs('avatar', { method: 'POST', path: UPLOAD_AVATAR, headers, body }, ['rate_limit_reached']);
    if (!isLost(outcome) && outcome.status === 200) account.hasAvatar = true;
    return outcome;
  }

  return { work };
}

export function randomBytes(random: SeededRandom, byteSize: number): Buffer {
  const key = Buffer.from(Array.from({ length: 16 }, () => random.below(256)));
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(byteSize));
}
