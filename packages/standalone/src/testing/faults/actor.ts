import { createCipheriv, createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { SeededRandom } from '../random.ts';
import { type Account, addApplication, callAs } from './account.ts';
import type { Entry, KnownApplication } from './ledger.ts';
import { describeOutcome, isInDoubt, isLost, type Outcome, Violation } from './outcome.ts';
import { type Cut, sendUpload, type UploadRequest } from './upload-request.ts';
import type { World } from './world.ts';

const KIB = 1024;

/** Sizes of files: below the first, then up to each next. */
const SIZE_STEPS = [16, 64 * KIB, 1024 * KIB, 4 * 1024 * KIB];

const APPLICATIONS_MAX = 3;

/** How long a client waits that was refused, and that reached nobody, in milliseconds. */
const WAIT_MS = 40;
const UNREACHED_WAIT_MS = 200;

const CUTS: readonly Cut['after'][] = ['nothing', 'half', 'all but a byte', 'all but the end mark'];

/** One client of an account, who does something or other until told to stop and writes down what it was answered. */
export class Actor {
  readonly #world: World;
  readonly #account: Account;
  readonly #random: SeededRandom;
  readonly #name: string;

  constructor(world: World, account: Account, session: number, random: SeededRandom) {
    this.#world = world;
    this.#account = account;
    this.#random = random;
    this.#name = `${account.name}.${session}`;
  }

  /** @throws {Violation} on an answer that can't be right */
  async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const dice = this.#random.below(100);
      const outcome =
        dice < 70
          ? await this.#upload()
          : dice < 80
            ? await this.#rename()
            : dice < 97
              ? await this.#delete()
              : await this.#replace();
      if (outcome === undefined || isLost(outcome) || outcome.status !== 200) await pause(this.#random.below(WAIT_MS));
    }
  }

  async #upload(): Promise<Outcome | undefined> {
    const applications = this.#account.ledger.usable();
    if (applications.length === 0) return addApplication(this.#account, this.#world.subject.port);
    const upload = this.#draw(this.#random.pick(applications));
    const isRight = upload.digest === undefined || upload.digest.equals(sha256(upload.bytes));
    const entry = this.#enter(upload);
    const outcome = await sendUpload(this.#world.subject.port, upload);
    this.#settleUpload(entry, outcome, { isRight, isCut: upload.cut !== undefined });
    if (isLost(outcome) && outcome.lost === 'ECONNREFUSED') await pause(UNREACHED_WAIT_MS);
    if (!isLost(outcome) && outcome.code === 'limit_exceeded') return this.#delete();
    const { unanswered } = this.#world;
    const isOpen = isLost(outcome) ? outcome.lost !== 'ECONNREFUSED' : isInDoubt(outcome);
    if (isOpen && isRight) unanswered.push({ account: this.#account, entry, bytes: upload.bytes });
    return outcome;
  }

  #draw({ id: applicationId }: KnownApplication): UploadRequest {
    const random = this.#random;
    const step = random.below(SIZE_STEPS.length);
    const bytes = randomBytesOf(random, 1 + random.below(SIZE_STEPS[step] ?? 1));
    const chunked = random.oneIn(2);
    const digest = random.oneIn(2) ? sha256(random.oneIn(8) ? Buffer.from('other bytes') : bytes) : undefined;
    const after = random.pick(chunked ? CUTS : CUTS.slice(0, 3));
    const cut: Cut | undefined = random.oneIn(8) ? { after, by: random.pick(['FIN', 'RST']) } : undefined;
    // Slow ones, so that most of what goes wrong meets a body on its way.
    const pace = random.oneIn(3) ? { pieces: 2 + random.below(8), pauseMs: 1 + random.below(60) } : {};
    const fileName = this.#account.ledger.newName();
    const { authorization } = this.#account;
    return { authorization, applicationId, fileName, bytes, chunked, digest, cut, ...pace };
  }

  #enter({ applicationId, fileName, bytes }: UploadRequest): Entry {
    const checksum = sha256(bytes).toString('hex');
    const entry: Entry = {
      applicationId,
      names: [fileName],
      id: undefined,
      byteSize: bytes.length,
      checksum,
      state: 'in doubt',
      busy: true,
    };
    this.#account.ledger.entries.push(entry);
    return entry;
  }

  #settleUpload(entry: Entry, outcome: Outcome, { isRight, isCut }: { isRight: boolean; isCut: boolean }): void {
    const { counts } = this.#world;
    entry.busy = false;
    if (isLost(outcome) && outcome.lost === 'ECONNREFUSED') {
      entry.state = 'gone';
      return;
    }
    counts.uploads += 1;
    this.#note(`upload ${entry.names[0]} of ${entry.byteSize} bytes${isCut ? ', cut' : ''}`, outcome);
    if (isCut) counts.cut += 1;
    else if (isLost(outcome)) counts.lost += 1;
    if (isInDoubt(outcome)) {
      // Also an error of the server may have come after the commit.
      counts.inDoubt += 1;
      return;
    }
    entry.state = 'gone';
    if (isLost(outcome)) return;
    if (outcome.status !== 200) {
      counts.refused += 1;
      this.#checkRefusal(entry, outcome.code, { isRight, isCut });
      return;
    }
    counts.stored += 1;
    const { id, byteSize, checksum } = outcome.data;
    if (isCut || !isRight) throw this.#violation(`An upload that was ${isCut ? 'cut' : 'corrupt'} was stored`, entry);
    if (byteSize !== entry.byteSize || checksum !== entry.checksum) throw this.#violation('Other bytes were stored', entry);
    entry.id = id;
    entry.state = 'there';
  }

  /** What may be refused at all in this game; whether it had to be is what the tests of the service are for. */
  #checkRefusal(entry: Entry, code: string, { isRight, isCut }: { isRight: boolean; isCut: boolean }): void {
    const application = this.#account.ledger.application(entry.applicationId);
    const may: Record<string, boolean> = {
      limit_exceeded: true,
      rate_limit_reached: true,
      invalid_file: !isRight,
      not_found: application?.state !== 'there',
      bad_request: isCut,
      VALIDATION_ERROR: isCut,
    };
    if (!may[code]) throw this.#violation(`An upload was refused with ${code}`, entry);
  }

  async #rename(): Promise<Outcome | undefined> {
    const entry = this.#take();
    if (!entry) return undefined;
    const fileName = this.#account.ledger.newName();
    const outcome = await this.#act(entry, { action: 'change_file_name', fileId: entry.id, fileName });
    this.#note(`rename ${entry.names} to ${fileName}`, outcome);
    entry.busy = false;
    if (isInDoubt(outcome)) entry.names.push(fileName);
    else if (!isLost(outcome) && outcome.status === 200) entry.names = [fileName];
    else this.#checkAction(entry, outcome);
    return outcome;
  }

  async #delete(): Promise<Outcome | undefined> {
    const entry = this.#take();
    if (!entry) return undefined;
    const outcome = await this.#act(entry, { action: 'delete_file', fileId: entry.id });
    this.#note(`delete ${entry.names}`, outcome);
    entry.busy = false;
    if (isInDoubt(outcome)) entry.state = 'in doubt';
    else if (!isLost(outcome) && outcome.status === 200) entry.state = 'gone';
    else this.#checkAction(entry, outcome);
    return outcome;
  }

  #take(): Entry | undefined {
    const idle = this.#account.ledger.idle();
    if (idle.length === 0) return undefined;
    const entry = this.#random.pick(idle);
    entry.busy = true;
    return entry;
  }

  async #act({ applicationId }: Entry, body: object): Promise<Outcome> {
    const outcome = await callAs(this.#account, this.#world.subject.port, {
      method: 'POST',
      path: '/api/v1/panel/file-action',
      query: { applicationId },
      body,
    });
    if (isInDoubt(outcome)) this.#world.counts.changesInDoubt += 1;
    return outcome;
  }

  /** A file that is there can only be missed because its application is going. */
  #checkAction(entry: Entry, outcome: Outcome): void {
    if (isLost(outcome)) return;
    const isGoing = this.#account.ledger.application(entry.applicationId)?.state !== 'there';
    if (outcome.status !== 404 || !isGoing) throw this.#violation(`An action was answered ${describeOutcome(outcome)}`, entry);
  }

  /** Deletes an application, or makes another where there are few. */
  async #replace(): Promise<Outcome | undefined> {
    const { ledger } = this.#account;
    const { port } = this.#world.subject;
    const usable = ledger.usable();
    if (usable.length < APPLICATIONS_MAX) return addApplication(this.#account, port);
    const application = this.#random.pick(usable);
    application.state = 'in doubt';
    const request = { applicationId: application.id, code: '' };
    const outcome = await callAs(this.#account, port, {
      method: 'DELETE',
      path: '/api/v1/panel/delete-application',
      body: request,
    });
    this.#note(`delete the application ${application.id}`, outcome);
    if (isInDoubt(outcome)) this.#world.counts.changesInDoubt += 1;
    else if (isLost(outcome)) application.state = 'there';
    else if (outcome.status === 200) application.state = 'gone';
    else throw new Violation(`An application was not deleted: ${describeOutcome(outcome)}`);
    return outcome;
  }

  #note(what: string, outcome: Outcome): void {
    this.#world.journal.note(`${this.#name} ${what}: ${describeOutcome(outcome)}`);
  }

  #violation(what: string, { names, applicationId, id }: Entry): Violation {
    return new Violation(`${what}: ${names} (${id}) of ${this.#name} in ${applicationId}`);
  }
}

export function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

function randomBytesOf(random: SeededRandom, byteSize: number): Buffer {
  const key = Buffer.from(Array.from({ length: 16 }, () => random.below(256)));
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(byteSize));
}
