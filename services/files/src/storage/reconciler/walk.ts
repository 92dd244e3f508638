import type { Kysely } from 'kysely';
import type { FilesDatabase } from '../../db/schema.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import type { CheckCounts, Finding } from './finding.ts';

/** What is compared. */
export interface CheckContext {
  readonly db: Kysely<FilesDatabase>;
  readonly store: ObjectStore;
}

/** A walk over what there is. */
export interface Walk extends CheckContext {
  readonly skipChecksums: boolean;
  readonly counts: CheckCounts;
  /** To be called when a count has changed. */
  readonly tell: () => void;
  readonly report: (finding: Finding) => void;
}
