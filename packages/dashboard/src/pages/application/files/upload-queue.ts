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

/** True for a file that no attempt stores: details name what is not valid. */
export const isRejected = (state: UploadState): boolean =>
  state.kind === 'failed' && state.error instanceof LatchkeyError && state.error.details.length > 0;

export const hasEnded = ({ state }: Upload): boolean => ['done', 'cancelled'].includes(state.kind) || isRejected(state);

/** Functions of the page around the queue. */
export interface QueueEnvironment {
  /** The error of a size that can't be stored, if that is known. */
  readonly findSizeError: (file: File) => LatchkeyError | undefined;
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

/**
 * Uploads of this page, of all applications. They go on while other pages are open, one after the
 * other: the service accepts one upload of an account at a time.
 */
export function createUploadQueue({ findSizeError, isNameFree, send, onStored, onError }: QueueEnvironment) {
  const listeners = new Set<() => void>();
  let snapshot: QueueSnapshot = { uploads: [], pausedUntil: undefined };
  let running: { readonly id: number; readonly controller: AbortController } | undefined;
  let lastId = 0;

  function publish(changes: Partial<QueueSnapshot>): void {
    snapshot = { ...snapshot, ...changes };
    for (const listener of listeners) listener();
  }

  const change = (id: number, changed: (upload: Upload) => Upload) =>
    publish({ uploads: snapshot.uploads.map((upload) => (upload.id === id ? changed(upload) : upload)) });

  const abort = (id: number) => running?.id === id && running.controller.abort();

  async function runAll(): Promise<void> {
    if (running || snapshot.pausedUntil !== undefined) return;
    const upload = snapshot.uploads.find(({ state }) => state.kind === 'waiting');
    if (!upload) return;
    const { id } = upload;
    const controller = new AbortController();
    running = { id, controller };
    const setState = (state: UploadState) => controller.signal.aborted || change(id, (current) => ({ ...current, state }));
    setState({ kind: 'running', sentBytes: 0, bytesPerSecond: 0 });
    try {
      setState(await run(upload, controller.signal, setState));
    } catch (error) {
      if (!controller.signal.aborted) setState(explainFailure(error));
    }
    running = undefined;
    await runAll();
  }

  async function run(upload: Upload, signal: AbortSignal, setState: (state: UploadState) => void): Promise<UploadState> {
    const name = upload.ifTaken === 'replace' ? upload.name : await findFreeName(upload, signal);
    if (name === undefined) return TAKEN;
    if (name !== upload.name) change(upload.id, (named) => ({ ...named, name }));
    let startedAt: number | undefined;
    const onProgress = ({ sentBytes }: UploadProgress) => {
      startedAt ??= performance.now();
      const seconds = (performance.now() - startedAt) / 1_000;
      setState({ kind: 'running', sentBytes, bytesPerSecond: seconds > 0 ? sentBytes / seconds : 0 });
    };
    const { checksum } = await send({ ...upload, name }, { signal, onProgress });
    onStored(upload);
    return { kind: 'done', checksum };
  }

  /** An upload with a name that is taken would count as an attempt. */
  async function findFreeName({ applicationId, file, name, ifTaken }: Upload, signal: AbortSignal): Promise<string | undefined> {
    for (let number = 1; number <= (ifTaken === 'number' ? NUMBER_MAX : 1); number += 1) {
      const candidate = number === 1 ? name : numberName(name, number);
      if (await isNameFree(applicationId, candidate, signal, file)) return candidate;
    }
    return undefined;
  }

  /** The state after an error, of which a rate limit pauses the queue. */
  function explainFailure(error: unknown): UploadState {
    onError(error);
    const { code, retryAfterSeconds = PAUSE_DEFAULT_SECONDS } = error instanceof LatchkeyError ? error : { code: undefined };
    if (code === 'file_name_taken') return TAKEN;
    if (code === 'file_in_use') return { ...TAKEN, problem: IN_USE };
    if (code !== 'rate_limit_reached') return { kind: 'failed', error };
    const ms = (retryAfterSeconds + 1) * 1_000;
    publish({ pausedUntil: Date.now() + ms });
    setTimeout(() => {
      publish({ pausedUntil: undefined });
      void runAll();
    }, ms);
    return { kind: 'waiting' };
  }

  return {
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    getSnapshot: () => snapshot,
    /**
     * Adds files. Those with a name that files cannot have wait for another one. Returns how many
     * were added.
     */
    add(applicationId: string, files: readonly File[], ifTaken: IfTaken = 'ask'): number {
      const added = files.slice(0, QUEUE_MAX - snapshot.uploads.length).map((file): Upload => {
        lastId += 1;
        const name = withoutInvisible(file.name);
        const error = findSizeError(file);
        const state = error ? ({ kind: 'failed', error } as const) : toState(name);
        return { id: lastId, applicationId, file, name: suggestName(name), ifTaken, state };
      });
      publish({ uploads: [...snapshot.uploads, ...added] });
      void runAll();
      return added.length;
    },
    /** Puts an upload into the queue, with this name: the first time, and to try again. */
    start(id: number, { name, ifTaken }: { readonly name?: string; readonly ifTaken?: IfTaken } = {}): void {
      change(id, (upload) => {
        const wanted = withoutInvisible(name ?? upload.name);
        const decided = name === undefined ? upload.ifTaken : 'ask';
        return { ...upload, name: wanted, ifTaken: ifTaken ?? decided, state: toState(wanted) };
      });
      void runAll();
    },
    cancel(id: number): void {
      abort(id);
      change(id, (upload) => ({ ...upload, state: { kind: 'cancelled' } }));
    },
    /** Removes an upload from the list. */
    remove(id: number): void {
      abort(id);
      publish({ uploads: snapshot.uploads.filter((upload) => upload.id !== id) });
    },
    removeEnded(applicationId: string): void {
      publish({ uploads: snapshot.uploads.filter((upload) => upload.applicationId !== applicationId || !hasEnded(upload)) });
    },
  };
}
