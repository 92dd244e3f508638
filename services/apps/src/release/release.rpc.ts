import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { actingFor, bindCalls } from '@latchkey/audit/actor';
import { createIdToken } from '@latchkey/kit/crypto/id-token';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import {
  type Release,
  ReleaseSchema,
  type ReleaseService,
  ReleaseSettingsSchema,
  ReleaseStatus,
} from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { LRUCache } from 'lru-cache';
import type { AppsContext } from '../context.ts';
import { detachFile, getFeed, resolveDownload } from './feed.ts';
import * as releases from './release.ts';
import * as settings from './release-settings.ts';

const STATUSES = { draft: ReleaseStatus.DRAFT, published: ReleaseStatus.PUBLISHED, yanked: ReleaseStatus.YANKED };

export function releaseRpc(ctx: AppsContext): RpcImpl<typeof ReleaseService> {
  const read = bindCalls(() => ctx);
  const change = bindCalls((call) => actingFor(ctx, call));
  const parseFeed = createFeedParser(ctx);
  return {
    createRelease: change(releases.createRelease, toRelease),
    listReleases: read(releases.listReleases, (rows) => ({ releases: rows.map((row) => toMessage(row)) })),
    getRelease: read(releases.getRelease, (row) => {
      return { release: toMessage(row), applicationId: row.application_id, signingKeys: row.signing_keys };
    }),
    updateRelease: change(releases.updateRelease, toRelease),
    deleteRelease: change(releases.deleteRelease),
    publishRelease: change(releases.publishRelease, toRelease),
    yankRelease: change(releases.yankRelease, toRelease),
    setRollout: change(releases.setRollout, toRelease),
    getReleaseSettings: read(settings.getReleaseSettings, toSettings),
    updateReleaseSettings: change(settings.updateReleaseSettings, toSettings),
    detachFile: read(detachFile),
    getFeed: read(getFeed, ({ name: applicationName, public_updates: publicUpdates, releases: json }) => {
      return { applicationName, publicUpdates, releases: json === null ? [] : parseFeed(json) };
    }),
    resolveDownload: read(resolveDownload),
  };
}

/** Length of all feeds in memory, in characters of their JSON. */
const FEEDS_LENGTH_MAX = 16 * 1024 * 1024;

const HOUR_MS = 3_600_000;
/** Hours that a download is valid at least: an updater may ask its user before it begins. */
const DOWNLOAD_HOURS = 24;

/**
 * Parses a feed and signs its files once for each content and hour: it is polled far more often.
 * The JSON has the ids of its releases, so that no two feeds are equal.
 */
function createFeedParser({ clock, downloadKey }: AppsContext) {
  const parsed = new LRUCache<string, readonly Release[]>({
    maxSize: FEEDS_LENGTH_MAX,
    sizeCalculation: (_releases, key) => key.length,
  });
  return (json: string): Release[] => {
    const expiresAt = new Date((Math.ceil(clock().getTime() / HOUR_MS) + DOWNLOAD_HOURS) * HOUR_MS);
    const key = `${expiresAt.getTime()} ${json}`;
    let offered = parsed.get(key);
    if (!offered) {
      const rows = JSON.parse(json) as releases.ReleaseRow[];
      offered = rows.map((row) => {
        const tokenOf = (fileId: string) => createIdToken(downloadKey, fileId, expiresAt, row.application_id);
        return create(ReleaseSchema, toMessage(row, tokenOf));
      });
      parsed.set(key, offered);
    }
    return [...offered];
  };
}

function toMessage(row: releases.ReleaseRow, tokenOf: (fileId: string) => string = () => '') {
  const { id, version, channel, notes, rollout_percent: rolloutPercent } = row;
  return {
    ...{ id, version, channel, notes, rolloutPercent },
    status: STATUSES[row.status],
    // In a feed, which is stored as JSON, times are texts.
    ...(row.published_at && { publishedAt: timestampFromDate(new Date(row.published_at)) }),
    artifacts: row.artifacts.map((artifact) => ({
      ...artifact,
      byteSize: BigInt(artifact.byteSize ?? 0),
      downloadToken: tokenOf(artifact.fileId),
      revision: row.revision,
    })),
  };
}

const toRelease = (row: releases.ReleaseRow) => ({ release: toMessage(row) });

const toSettings = (row: object) => ({ settings: fromRow(ReleaseSettingsSchema, row) });
