import type { Acting } from '@latchkey/audit/actor';
import { runTransaction } from '@latchkey/audit/transaction';
import { RELEASES_LISTED_KB_MAX, RELEASES_LISTED_MAX } from '@latchkey/contract/page-size';
import {
  FEED_BYTES_MAX,
  FEED_NOTES_LENGTH_MAX,
  FEED_RECENT_RELEASES,
  FEED_RELEASES_MAX,
  RELEASES_MAX,
  STABLE_CHANNEL,
} from '@latchkey/contract/release';
import { isUniqueViolation } from '@latchkey/kit/database/database';
import { newId, parseId } from '@latchkey/kit/validation/id';
import type {
  CreateReleaseRequest,
  InspectedFile,
  PublishReleaseRequest,
  SetRolloutRequest,
  UpdateReleaseRequest,
  YankReleaseRequest,
} from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { type ApplicationRef, parseRef } from '../application/application-ref.ts';
import { type ApplicationChange, changeApplication } from '../application/change-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { applySetting } from '../setting/setting.ts';
import * as store from './release.store.ts';
import { byVersion, checkRelease, isDowngrade, type ReleaseProperties, toStored } from './release-rules.ts';

export type { ReleaseRow } from './release.store.ts';

/** Names a release of an application of an account. */
export type ReleaseRef = ApplicationRef & { readonly releaseId: string };

/**
 * Makes a draft.
 *
 * @throws `application_not_found`, `release_invalid`, `release_exists`, `releases_limit_exceeded`
 */
export async function createRelease(ctx: Acting<AppsContext>, { release, ...ref }: CreateReleaseRequest) {
  if (!release) throw errors.release_invalid();
  const { version, channel, notes, rolloutPercent } = release;
  checkRelease(release);
  return changeApplication(ctx, ref, async ({ tx, row, record }) => {
    if ((await store.countReleases(tx, row.id)) >= RELEASES_MAX) throw errors.releases_limit_exceeded();
    const id = newId();
    const columns = { version, channel, notes, rollout_percent: rolloutPercent, artifacts: toStored(release.artifacts) };
    const draft = { ...columns, id, application_id: row.id, published_at: null, created_at: ctx.clock() };
    const created = await store.insertRelease(tx, draft).catch(toTaken);
    await record('release.created', describe(created));
    return created;
  });
}

/** The releases of an application, newest first. Throws `application_not_found`. */
export async function listReleases(ctx: AppsContext, ref: ApplicationRef) {
  const { accountId, applicationId } = parseRef(ref);
  if (!(await ctx.reads.selectSettings(applicationId, accountId))) throw errors.application_not_found();
  const bounds = { limit: RELEASES_LISTED_MAX, bytesMax: RELEASES_LISTED_KB_MAX * 1_000 };
  return store.selectReleases(ctx.db, applicationId, bounds);
}

/** A release of an account, and the signing keys of its application. Throws `release_not_found`. */
export async function getRelease(ctx: AppsContext, ref: ReleaseRef) {
  const [accountId, releaseId] = [parseId(ref.accountId), parseId(ref.releaseId)];
  const found = accountId && releaseId && (await store.selectRelease(ctx.db, accountId, releaseId));
  if (!found) throw errors.release_not_found();
  if (ref.applicationId !== '' && parseId(ref.applicationId) !== found.application_id) throw errors.release_not_found();
  return found;
}

/**
 * Changes a draft.
 *
 * @throws `application_not_found`, `release_not_found`, `release_invalid`, `release_not_draft`,
 *   `release_exists`
 */
export async function updateRelease(ctx: Acting<AppsContext>, request: UpdateReleaseRequest) {
  const { version, channel, notes, rolloutPercent } = request;
  const artifacts = request.artifacts?.artifacts;
  const given: ReleaseProperties = { version, channel, notes, rolloutPercent, artifacts };
  checkRelease(given);
  return changeRelease(ctx, request, ['draft'], async ({ tx, record }, release) => {
    const columns = { version, channel, notes, rollout_percent: rolloutPercent, artifacts: artifacts && toStored(artifacts) };
    const updated = await store.updateRelease(tx, release.id, columns).catch(toTaken);
    const fields = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    await record('release.updated', { ...describe(release), fields });
    return updated;
  });
}

/**
 * Removes a draft, and returns its application.
 *
 * @throws `application_not_found`, `release_not_found`, `release_not_draft`
 */
export async function deleteRelease(ctx: Acting<AppsContext>, ref: ReleaseRef) {
  return changeRelease(ctx, ref, ['draft'], async ({ tx, row, record }, release) => {
    await store.deleteRelease(tx, release.id);
    await record('release.deleted', describe(release));
    return { applicationId: row.id };
  });
}

/**
 * Publishes a draft. The feed, the version of the application and its event change in the same
 * transaction.
 *
 * @param request a file for each artifact, as it was read
 * @throws `application_not_found`, `release_not_found`, `release_not_draft`, `release_downgrade`,
 *   `release_changed`, `release_signature_invalid`, `release_invalid`
 */
export async function publishRelease(ctx: Acting<AppsContext>, request: PublishReleaseRequest) {
  checkRelease({ rolloutPercent: request.rolloutPercent });
  return changeRelease(ctx, request, ['draft'], async (change, release) => {
    const { version, channel, rollout_percent: drafted } = release;
    const { rolloutPercent = drafted } = request;
    const published = await store.selectPublished(change.tx, change.row.id, channel);
    if (isDowngrade(release, published)) throw errors.release_downgrade();
    const artifacts = JSON.stringify(verifyArtifacts(release, request.files, change.row.signing_keys));
    const now = ctx.clock();
    const columns = { status: 'published', published_at: now, rollout_percent: rolloutPercent, artifacts } as const;
    const changed = await changeOffer(change, release, columns);
    await change.record('release.published', { ...describe(release), rolloutPercent });
    if (channel === STABLE_CHANNEL) await applySetting(change, 'version', version, now);
    return changed;
  });
}

/** The artifacts with what was read of their files. */
function verifyArtifacts(
  { artifacts, revision }: store.ReleaseRow,
  files: readonly InspectedFile[],
  signingKeys: readonly string[],
) {
  // A file that was deleted meanwhile has left the draft.
  if (files.length !== artifacts.length) throw errors.release_changed();
  return artifacts.map((artifact) => {
    const file = files.find(({ fileId, signature }) => fileId === artifact.fileId && signature === artifact.signature);
    // A file that was replaced meanwhile has another content than the one that was read.
    if (!file || (file.revision !== '' && file.revision !== revision)) throw errors.release_changed();
    const isVerified = artifact.signature !== '' && signingKeys.includes(file.verifiedKey);
    if (signingKeys.length > 0 && !isVerified) throw errors.release_signature_invalid();
    return { ...artifact, byteSize: Number(file.byteSize), checksum: file.checksum, sha512: file.sha512 };
  });
}

/**
 * Withdraws a release from updaters. Yanking it again changes nothing.
 *
 * @throws `application_not_found`, `release_not_found`, `release_not_published`, `release_invalid`
 */
export async function yankRelease(ctx: Acting<AppsContext>, request: YankReleaseRequest) {
  const { reason } = request;
  checkRelease({ reason });
  return changeRelease(ctx, request, ['published', 'yanked'], async (change, release) => {
    if (release.status === 'yanked') return release;
    const changed = await changeOffer(change, release, { status: 'yanked' });
    await change.record('release.yanked', { ...describe(release), ...(reason !== '' && { reason }) });
    return changed;
  });
}

/**
 * Sets the share of the clients that are offered a release.
 *
 * @throws `application_not_found`, `release_not_found`, `release_not_published`, `release_invalid`
 */
export async function setRollout(ctx: Acting<AppsContext>, request: SetRolloutRequest) {
  const { rolloutPercent } = request;
  checkRelease({ rolloutPercent });
  return changeRelease(ctx, request, ['published'], async (change, release) => {
    const { rollout_percent: previous } = release;
    if (previous === rolloutPercent) return release;
    const changed = await changeOffer(change, release, { rollout_percent: rolloutPercent });
    await change.record('release.rollout_changed', { ...describe(release), rolloutPercent, previous });
    return changed;
  });
}

/** Changes a release in one of some states while its application is locked. */
async function changeRelease<T>(
  ctx: Acting<AppsContext>,
  ref: ReleaseRef,
  states: ReadonlyArray<store.ReleaseRow['status']>,
  apply: (change: ApplicationChange, release: store.ReleaseRow) => Promise<T>,
): Promise<T> {
  // A release that is gone has no application. The transaction may replay its deletion.
  if (ref.applicationId === '') return runTransaction(ctx.db, () => Promise.reject(errors.release_not_found()));
  return changeApplication(ctx, ref, async (change) => {
    const releaseId = parseId(ref.releaseId);
    const release = releaseId && (await store.selectRelease(change.tx, change.row.account_id, releaseId));
    if (!release || release.application_id !== change.row.id) throw errors.release_not_found();
    if (!states.includes(release.status))
      throw states[0] === 'draft' ? errors.release_not_draft() : errors.release_not_published();
    return apply(change, release);
  });
}

/** Changes a release and the feed of its channel. */
async function changeOffer(change: ApplicationChange, { id, channel }: store.ReleaseRow, columns: store.ReleaseColumns) {
  const changed = await store.updateRelease(change.tx, id, columns);
  await writeFeed(change, channel);
  return changed;
}

/**
 * Writes the highest versions of a channel, and the lower ones that clients of other platforms or
 * outside of a roll-out are offered instead.
 */
async function writeFeed({ tx, row }: ApplicationChange, channel: string): Promise<void> {
  const published = (await store.selectPublished(tx, row.id, channel)).toSorted(byVersion);
  // Platforms whose clients are all offered a higher version; the empty one is any.
  const served = new Set<string>();
  const offered = published.filter(({ rollout_percent, targets }, index) => {
    const added = rollout_percent < 100 ? [] : ['', ...targets].filter((target) => !served.has(target));
    for (const target of added) served.add(target);
    return index < FEED_RECENT_RELEASES || added.length > 0;
  });
  const ids = offered.slice(0, FEED_RELEASES_MAX).map(({ id }) => id);
  await store.writeFeed(tx, row.id, channel, toFeedJson((await store.selectReleasesByIds(tx, ids)).toSorted(byVersion)));
}

/** The JSON of a feed in its bounds: lower versions lose their notes first, then their place. */
function toFeedJson(offered: readonly store.ReleaseRow[]): string {
  let [notesLength, byteSize] = [0, 0];
  const texts = offered.map((release) => {
    notesLength += release.notes.length;
    return JSON.stringify(notesLength > FEED_NOTES_LENGTH_MAX ? { ...release, notes: '' } : release);
  });
  const kept = texts.filter((text) => {
    byteSize += Buffer.byteLength(text);
    return byteSize <= FEED_BYTES_MAX;
  });
  return `[${kept.join()}]`;
}

const describe = ({ id, version, channel }: store.ReleaseRow) => ({ releaseId: id, version, channel });

function toTaken(err: unknown): never {
  throw isUniqueViolation(err, 'release_version') ? errors.release_exists() : err;
}
