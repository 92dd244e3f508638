import type { StoredObject } from '../object-store/object-store.ts';

/** A file's row, as far as a check needs it. */
export interface CheckedFile {
  readonly id: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number;
  /** SHA-256, 32 bytes. */
  readonly checksum: Buffer;
}

/** The row of an account's avatar, as far as a check needs it. */
export interface CheckedAvatar {
  readonly id: string;
  readonly accountId: string;
  readonly imageId: string;
  readonly byteSize: number;
  /** SHA-256, 32 bytes. */
  readonly checksum: Buffer;
}

/** Files and what they take of the allowance. */
export interface UsageFigures {
  readonly fileCount: number;
  readonly chargedMib: number;
}

/** What an application's files add up to, and what is recorded of them. */
export interface CheckedUsage {
  readonly applicationId: string;
  /** Undefined where nothing is recorded. */
  readonly recorded: UsageFigures | undefined;
  readonly actual: UsageFigures;
}

/** Something that does not agree. */
export type Finding =
  /** There is no object. */
  | { readonly kind: 'object_missing'; readonly file: CheckedFile }
  /** The object has other bytes: another size, or the same and another SHA-256, which is undefined where it was not computed. */
  | {
      readonly kind: 'object_damaged';
      readonly file: CheckedFile;
      readonly byteSize: number;
      readonly checksum: Buffer | undefined;
    }
  /** The store works, but does not give this object. It may yet do so, and is never mended. */
  | { readonly kind: 'object_unreadable'; readonly file: CheckedFile; readonly reason: string }
  /** An avatar whose image is not there, has other bytes, or is not given by a store that works. */
  | { readonly kind: 'avatar_lost'; readonly avatar: CheckedAvatar; readonly what: 'missing' | 'damaged' | 'unreadable' }
  /** An object that no file, avatar, upload or pending removal knows. */
  | { readonly kind: 'object_orphaned'; readonly object: StoredObject }
  /** The same of what an upload left unfinished. */
  | { readonly kind: 'upload_unfinished'; readonly object: StoredObject }
  | { readonly kind: 'usage_wrong'; readonly usage: CheckedUsage };

export type FindingKind = Finding['kind'];

/** What became of a finding: it was mended, no longer held, or could not be mended. */
export type MendOutcome = 'mended' | 'gone' | 'failed';

/** How far a check has come. */
export interface CheckCounts {
  files: number;
  /** Files that there are, about. */
  filesExpected: number;
  avatars: number;
  bytesRead: number;
  objects: number;
  applications: number;
  findings: number;
  mended: number;
}

/** Whom a check tells what it does; nothing of it may throw. */
export interface CheckObserver {
  /** Called often, always with the same object. */
  onProgress(counts: Readonly<CheckCounts>): void;
  onFinding(finding: Finding): void;
  onMended(finding: Finding, outcome: MendOutcome, err: unknown): void;
}
