import type { StoreView } from './stored-state.ts';

/**
 * Cost of a fault for clients: nothing; avatars, which a queue carries; an error in the envelope;
 * requests sent after it began, as a server that stops finishes what it has; anything but data.
 */
export type Cost = 'nothing' | 'avatars' | 'errors' | 'later requests' | 'anything';

/** Something that breaks, and its repair. */
export interface Fault {
  readonly name: string;
  readonly costs: Cost;
  /** Longest time to an error, in milliseconds. */
  readonly errorMsMax?: number;
  /** True if sockets are closed in good order, with 1001. */
  readonly closesSockets?: boolean;
  readonly breakIt: () => unknown;
  readonly repair: () => unknown;
}

/** A deployment that faults are injected into. */
export interface Target {
  readonly baseUrl: string;
  readonly realtimeUrl: string;
  /** Every gateway by itself. */
  readonly gateways: readonly string[];
  readonly faults: readonly Fault[];
  /** Kills of each process and server. */
  readonly kills: readonly Fault[];
  readonly store: StoreView;
  /** The superuser's. */
  databaseUrl(): Promise<string>;
  isReady(): Promise<boolean>;
  /** Last output of the process. */
  output(): string;
  stop(): Promise<void>;
}

/** Settings with which uploads end soon and accounts often reach their limits. */
export const ALLOWANCE = { mib: 32, files: 24 };
export const SETTINGS = {
  UPLOAD_DEADLINE_SECONDS: '10',
  STORAGE_ALLOWANCE_MIB: String(ALLOWANCE.mib),
  FILE_COUNT_LIMIT: String(ALLOWANCE.files),
  RUNTIME_KEY_ROTATIONS_PER_HOUR: '10000',
};

/** Errors come within 5 s without PostgreSQL, and 10 s without the object store (R9). */
export const DATABASE_ERROR_MS_MAX = 5_500;
export const STORE_ERROR_MS_MAX = 10_000;
