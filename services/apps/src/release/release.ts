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
  InspectedFile,
  PublishReleaseRequest,
  SetRolloutRequest,
  YankReleaseRequest,
} from '@latchkey/proto/latchkey/apps/v1/release_pb';
import semver from 'semver';
import { type ApplicationRef, parseRef } from '../application/application-ref.ts';
import { type ApplicationChange, changeApplication } from '../application/change-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { applySetting } from '../setting/setting.ts';
import * as store from './release.store.ts';
import { checkRollout, checkYankReason, parseReleaseChange, type ReleaseChange } from './release-rules.ts';

export type { ReleaseWithArtifacts } from './release.store.ts';

/** Names a release of an application of an account. */
export type ReleaseRef = ApplicationRef & { readonly releaseId: string };

type NewRelease = { readonly [P in keyof ReleaseChange]-?: Exclude<ReleaseChange[P], undefined> };

/**
 * Makes a draft.
 *
 * @throws `application_not_found`, `release_invalid`, `release_exists`, `releases_limit_exceeded`
 */
export async function createRelease(ctx: Acting<AppsContext>, ref: ApplicationRef, given: NewRelease) {
  const { version, channel, notes, rolloutPercent } = given;
  const { artifacts = [] } = parseReleaseChange(given);
  return changeApplication(ctx, ref, async (change) => {
    const { tx, row, record } = change;
    if ((await store.countReleases(tx, row.id)) >= RELEASES_MAX) throw errors.releases_limit_exceeded();
    const id = newId();
    const release = { id, application_id: row.id, version, channel, notes, rollout_percent: rolloutPercent };
    await store.insertRelease(tx, { ...release, published_at: null, created_at: ctx.clock() }).catch(toTaken);
    await store.replaceArtifacts(tx, id, artifacts);
    await record('release.created', { releaseId: id, version, channel });
    return readRelease(change, id);
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
export async function updateRelease(ctx: Acting<AppsContext>, ref: ReleaseRef, given: ReleaseChange) {
  const { columns, artifacts } = parseReleaseChange(given);
  return changeRelease(ctx, ref, async (change, release) => {
    requireDraft(release);
    await store.updateRelease(change.tx, release.id, columns).catch(toTaken);
    if (artifacts) await store.replaceArtifacts(change.tx, release.id, artifacts);
    const fields = [...Object.keys(columns), ...(artifacts ? ['artifacts'] : [])];
    await change.record('release.updated', { ...describe(release), fields });
    return readRelease(change, release.id);
  });
}

/**
 * Removes a draft, and returns its application.
 *
 * @throws `application_not_found`, `release_not_found`, `release_not_draft`
 */
export async function deleteRelease(ctx: Acting<AppsContext>, ref: ReleaseRef) {
  return changeRelease(ctx, ref, async ({ tx, row, record }, release) => {
    requireDraft(release);
    await store.deleteRelease(tx, release.id);
    await record('release.deleted', describe(release));
    return { applicationId: row.id };
  });
}

/**
 * Publishes a draft. The feed, the version of the application and its event change in the same
 * transaction. A channel only goes up: a lower version would never be offered.
 *
 * @param request a file for each artifact, as it was read
 * @throws `application_not_found`, `release_not_found`, `release_not_draft`, `release_downgrade`,
 *   `release_changed`, `release_signature_invalid`, `release_invalid`
 */
export async function publishRelease(ctx: Acting<AppsContext>, request: PublishReleaseRequest) {
  const { files, rolloutPercent } = request;
  if (rolloutPercent !== undefined) checkRollout(rolloutPercent);
  return changeRelease(ctx, request, async (change, release) => {
    const { tx, row, record } = change;
    requireDraft(release);
    const { version, channel } = release;
    const published = await store.selectPublished(tx, row.id, channel);
    if (published.some((other) => semver.compare(other.version, version) >= 0)) throw errors.release_downgrade();
    const artifacts = verifyArtifacts(release, files, await store.selectSigningKeys(tx, row.id));
    await store.replaceArtifacts(tx, release.id, artifacts);
    const rollout = rolloutPercent ?? release.rollout_percent;
    const now = ctx.clock();
    await store.updateRelease(tx, release.id, { status: 'published', published_at: now, rollout_percent: rollout });
    await writeFeed(change, channel);
    await record('release.published', { ...describe(release), rolloutPercent: rollout });
    if (channel === STABLE_CHANNEL) await applySetting(change, 'version', version, now);
    return readRelease(change, release.id);
  });
}

/** The artifacts with what was read of their files. */
function verifyArtifacts(
  { artifacts }: store.ReleaseWithArtifacts,
  files: readonly InspectedFile[],
  signingKeys: readonly string[],
) {
  // A file that was deleted meanwhile has left the draft.
  if (files.length !== artifacts.length) throw errors.release_changed();
  return artifacts.map(({ revision, ...artifact }) => {
    const file = files.find(({ fileId, signature }) => fileId === artifact.file_id && signature === artifact.signature);
    if (!file) throw errors.release_changed();
    // A file that was replaced meanwhile has another content than the one that was read.
    if (file.revision !== '' && file.revision !== revision) throw errors.release_changed();
    const isVerified = artifact.signature !== '' && signingKeys.includes(file.verifiedKey);
    if (signingKeys.length > 0 && !isVerified) throw errors.release_signature_invalid();
    return { ...artifact, byte_size: Number(file.byteSize), checksum: file.checksum, sha512: file.sha512 };
  });
}

/**
 * Withdraws a release from updaters. Yanking it again changes nothing.
 *
 * @throws `application_not_found`, `release_not_found`, `release_not_published`, `release_invalid`
 */
export async function yankRelease(ctx: Acting<AppsContext>, request: YankReleaseRequest) {
  const { reason } = request;
  checkYankReason(reason);
  return changeRelease(ctx, request, async (change, release) => {
    if (release.status === 'yanked') return release;
    requirePublished(release);
    await store.updateRelease(change.tx, release.id, { status: 'yanked' });
    await writeFeed(change, release.channel);
    await change.record('release.yanked', { ...describe(release), ...(reason !== '' && { reason }) });
    return readRelease(change, release.id);
  });
}

/**
 * Sets the share of the clients that are offered a release.
 *
 * @throws `application_not_found`, `release_not_found`, `release_not_published`, `release_invalid`
 */
export async function setRollout(ctx: Acting<AppsContext>, request: SetRolloutRequest) {
  const { rolloutPercent: percent } = request;
  checkRollout(percent);
  return changeRelease(ctx, request, async (change, release) => {
    requirePublished(release);
    if (release.rollout_percent === percent) return release;
    await store.updateRelease(change.tx, release.id, { rollout_percent: percent });
    await writeFeed(change, release.channel);
    const previous = release.rollout_percent;
    await change.record('release.rollout_changed', { ...describe(release), rolloutPercent: percent, previous });
    return readRelease(change, release.id);
  });
}

/** Changes a release while its application is locked. */
async function changeRelease<T>(
  ctx: Acting<AppsContext>,
  ref: ReleaseRef,
  apply: (change: ApplicationChange, release: store.ReleaseWithArtifacts) => Promise<T>,
): Promise<T> {
  // A release that is gone has no application. The transaction may replay its deletion.
  if (ref.applicationId === '') return runTransaction(ctx.db, () => Promise.reject(errors.release_not_found()));
  return changeApplication(ctx, ref, async (change) => {
    const releaseId = parseId(ref.releaseId);
    const release = releaseId && (await store.selectReleaseOf(change.tx, change.row.id, releaseId));
    if (!release) throw errors.release_not_found();
    return apply(change, release);
  });
}

async function readRelease({ tx, row }: ApplicationChange, id: string): Promise<store.ReleaseWithArtifacts> {
  return (await store.selectReleaseOf(tx, row.id, id)) as store.ReleaseWithArtifacts;
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
function toFeedJson(offered: readonly store.ReleaseWithArtifacts[]): string {
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

/** The highest version first. */
const byVersion = (a: { readonly version: string }, b: { readonly version: string }) => semver.compare(b.version, a.version);

const describe = ({ id, version, channel }: store.ReleaseRow) => ({ releaseId: id, version, channel });

function requireDraft({ status }: store.ReleaseRow): void {
  if (status !== 'draft') throw errors.release_not_draft();
}

function requirePublished({ status }: store.ReleaseRow): void {
  if (status !== 'published') throw errors.release_not_published();
}

function toTaken(err: unknown): never {
  throw isUniqueViolation(err, 'release_version') ? errors.release_exists() : err;
}
