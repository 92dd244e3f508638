import { LatchkeyError, type UploadProgress } from '@latchkey/client';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { findNameProblem, numberName, suggestName } from './file-name.ts';

export type UploadState =
  /** The name has to be changed first, or the file that has it replaced. */
  | { readonly kind: 'name'; readonly problem: string; readonly isTaken?: boolean }
  | { readonly kind: 'waiting' }
  /** The checksum is computed, then bytes are sent. */
  | { readonly kind: 'running'; readonly sentBytes: number; readonly bytesPerSecond: number }
  | { readonly kind: 'done'; readonly checksum: string }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'cancelled' };

/**
 * Effect of an upload whose name a file has: a person decides, the file is replaced, or the name
 * gets a number.
 */
export type IfTaken = 'ask' | 'replace' | 'number';

export interface Upload {
  readonly id: number;
  readonly applicationId: string;
  readonly file: File;
  readonly name: string;
  readonly ifTaken: IfTaken;
  readonly state: UploadState;
}

export interface QueueSnapshot {
  readonly uploads: readonly Upload[];
  /** Until when the rate limit stops the queue, in milliseconds since 1970. */
  readonly pausedUntil: number | undefined;
}

/** Functions of the page around the queue. */
export interface QueueEnvironment {
  /** Also true if an unfinished upload of the file has the name. */
  readonly isNameFree: (applicationId: string, name: string, signal: AbortSignal, file: File) => Promise<boolean>;
  readonly send: (
    upload: Upload,
    options: { readonly signal: AbortSignal; readonly onProgress: (progress: UploadProgress) => void },
  ) => Promise<{ readonly checksum: string }>;
  readonly onStored: (upload: Upload) => void;
  readonly onError: (error: unknown) => void;
}

/** Most uploads in the queue. */
export const QUEUE_MAX = 500;
const PAUSE_DEFAULT_SECONDS = 10;

const TAKEN = { kind: 'name', problem: 'A file of this application has this name.', isTaken: true } as const;

const IN_USE = 'A published release needs the file that has this name.';

/** Highest number that a name gets by itself; each is a request. */
const NUMBER_MAX = 9;

function toState(name: string): UploadState {
  const problem = findNameProblem(name);
  return problem === undefined ? { kind: 'waiting' } : { kind: 'name', problem };
}

/** Uploads of this page, of all applications. They go on while other pages are open. */
export class UploadQueue {
  readonly #environment: QueueEnvironment;
  readonly #listeners = new Set<() => void>();
  /** The service accepts one upload of an account at a time. */
  #running: { readonly id: number; readonly controller: AbortController } | undefined;
  #snapshot: QueueSnapshot = { uploads: [], pausedUntil: undefined };
  #lastId = 0;

  constructor(environment: QueueEnvironment) {
    this.#environment = environment;
  }

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly getSnapshot = () => this.#snapshot;

  /**
   * Adds files. Those with a name that files cannot have wait for another one. Returns how many
   * were added.
   */
  add(applicationId: string, files: readonly File[], ifTaken: IfTaken = 'ask'): number {
    const added = files.slice(0, QUEUE_MAX - this.#snapshot.uploads.length).map((file): Upload => {
      this.#lastId += 1;
      const name = withoutInvisible(file.name);
      return { id: this.#lastId, applicationId, file, name: suggestName(name), ifTaken, state: toState(name) };
    });
    this.#publish({ uploads: [...this.#snapshot.uploads, ...added] });
    this.#startNext();
    return added.length;
  }

  /** Puts an upload into the queue, with this name: the first time, and to try again. */
  start(id: number, { name, ifTaken }: { readonly name?: string; readonly ifTaken?: IfTaken } = {}): void {
    this.#change(id, (upload) => {
      const wanted = withoutInvisible(name ?? upload.name);
      const decided = name === undefined ? upload.ifTaken : 'ask';
      return { ...upload, name: wanted, ifTaken: ifTaken ?? decided, state: toState(wanted) };
    });
    this.#startNext();
  }

  cancel(id: number): void {
    this.#abort(id);
    this.#change(id, (upload) => ({ ...upload, state: { kind: 'cancelled' } }));
  }

  /** Removes an upload from the list. */
  remove(id: number): void {
    this.#abort(id);
    this.#publish({ uploads: this.#snapshot.uploads.filter((upload) => upload.id !== id) });
  }

  /** The next upload starts once this one has ended. */
  #abort(id: number): void {
    if (this.#running?.id === id) this.#running.controller.abort();
  }

  removeEnded(applicationId: string): void {
    const isKept = (upload: Upload) =>
      upload.applicationId !== applicationId || !['done', 'cancelled'].includes(upload.state.kind);
    this.#publish({ uploads: this.#snapshot.uploads.filter(isKept) });
  }

  #startNext(): void {
    if (this.#snapshot.pausedUntil !== undefined || this.#running) return;
    const next = this.#snapshot.uploads.find(({ state }) => state.kind === 'waiting');
    if (next) void this.#run(next);
  }

  async #run(upload: Upload): Promise<void> {
    const { id } = upload;
    const controller = new AbortController();
    const { signal } = controller;
    this.#running = { id, controller };
    this.#setState(id, { kind: 'running', sentBytes: 0, bytesPerSecond: 0 }, signal);
    try {
      this.#setState(id, await this.#send(upload, signal), signal);
    } catch (error) {
      if (!signal.aborted) this.#fail(id, error, signal);
    } finally {
      this.#running = undefined;
      this.#startNext();
    }
  }

  async #send(upload: Upload, signal: AbortSignal): Promise<UploadState> {
    const name = upload.ifTaken === 'replace' ? upload.name : await this.#findFreeName(upload, signal);
    if (name === undefined) return TAKEN;
    if (name !== upload.name) this.#change(upload.id, (named) => ({ ...named, name }));
    let startedAt: number | undefined;
    const onProgress = ({ sentBytes }: UploadProgress) => {
      startedAt ??= performance.now();
      const seconds = (performance.now() - startedAt) / 1_000;
      this.#setState(upload.id, { kind: 'running', sentBytes, bytesPerSecond: seconds > 0 ? sentBytes / seconds : 0 }, signal);
    };
    const { checksum } = await this.#environment.send({ ...upload, name }, { signal, onProgress });
    this.#environment.onStored(upload);
    return { kind: 'done', checksum };
  }

  /** An upload with a name that is taken would count as an attempt. */
  async #findFreeName({ applicationId, file, name, ifTaken }: Upload, signal: AbortSignal): Promise<string | undefined> {
    for (let number = 1; number <= (ifTaken === 'number' ? NUMBER_MAX : 1); number += 1) {
      const candidate = number === 1 ? name : numberName(name, number);
      if (await this.#environment.isNameFree(applicationId, candidate, signal, file)) return candidate;
    }
    return undefined;
  }

  #fail(id: number, error: unknown, signal: AbortSignal): void {
    const { code, retryAfterSeconds = PAUSE_DEFAULT_SECONDS } = error instanceof LatchkeyError ? error : { code: undefined };
    if (code === 'rate_limit_reached') {
      this.#setState(id, { kind: 'waiting' }, signal);
      this.#pause(retryAfterSeconds);
    } else if (code === 'file_name_taken') this.#setState(id, TAKEN, signal);
    else if (code === 'file_in_use') this.#setState(id, { ...TAKEN, problem: IN_USE }, signal);
    else this.#setState(id, { kind: 'failed', error }, signal);
    this.#environment.onError(error);
  }

  #pause(seconds: number): void {
    if (this.#snapshot.pausedUntil !== undefined) return;
    const ms = (seconds + 1) * 1_000;
    this.#publish({ pausedUntil: Date.now() + ms });
    setTimeout(() => {
      this.#publish({ pausedUntil: undefined });
      this.#startNext();
    }, ms);
  }

  #setState(id: number, state: UploadState, signal: AbortSignal): void {
    if (!signal.aborted) this.#change(id, (upload) => ({ ...upload, state }));
  }

  #change(id: number, change: (upload: Upload) => Upload): void {
    this.#publish({ uploads: this.#snapshot.uploads.map((upload) => (upload.id === id ? change(upload) : upload)) });
  }

  #publish(changes: Partial<QueueSnapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...changes };
    for (const listener of this.#listeners) listener();
  }
}
