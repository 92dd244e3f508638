import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { actingFor, bindCalls } from '@latchkey/audit/actor';
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
import { createDownloadToken, expiryHour } from './download-token.ts';
import { detachFile, getFeed, resolveDownload } from './feed.ts';
import type { ReleaseRow } from './release.store.ts';
import * as releases from './release.ts';
import * as settings from './release-settings.ts';

const STATUSES = { draft: ReleaseStatus.DRAFT, published: ReleaseStatus.PUBLISHED, yanked: ReleaseStatus.YANKED };

export function releaseRpc(ctx: AppsContext): RpcImpl<typeof ReleaseService> {
  const bind = bindCalls((call) => actingFor(ctx, call));
  const readOffered = createFeedReader(ctx);
  return {
    createRelease: bind(releases.createRelease, toRelease),
    listReleases: async (ref) => ({ releases: (await releases.listReleases(ctx, ref)).map((row) => toMessage(row)) }),
    async getRelease(ref) {
      const found = await releases.getRelease(ctx, ref);
      return { release: toMessage(found), applicationId: found.application_id, signingKeys: found.signing_keys };
    },
    updateRelease: bind(releases.updateRelease, toRelease),
    deleteRelease: bind(releases.deleteRelease),
    publishRelease: bind(releases.publishRelease, toRelease),
    yankRelease: bind(releases.yankRelease, toRelease),
    setRollout: bind(releases.setRollout, toRelease),
    getReleaseSettings: async (ref) => toSettings(await settings.getReleaseSettings(ctx, ref)),
    updateReleaseSettings: bind(settings.updateReleaseSettings, toSettings),
    detachFile: (request) => detachFile(ctx, request),
    async getFeed(request) {
      const { channel, httpKey } = request;
      const { applicationId, releasesJson, ...feed } = await getFeed(ctx, request.applicationId, channel, httpKey);
      return { ...feed, releases: readOffered(applicationId, channel, releasesJson) };
    },
    resolveDownload: (request) => resolveDownload(ctx, request),
  };
}

/** Length of all feeds in memory, in characters of their JSON. */
const FEEDS_LENGTH_MAX = 16 * 1024 * 1024;

interface ParsedFeed {
  readonly json: string;
  readonly expiryHour: number;
  readonly releases: readonly Release[];
}

/**
 * Parses a feed and signs its files when it has changed, or the hour: it is polled far more often.
 */
function createFeedReader({ clock, downloadKey }: AppsContext) {
  const parsed = new LRUCache<string, ParsedFeed>({
    maxSize: FEEDS_LENGTH_MAX,
    sizeCalculation: ({ json }) => json.length,
  });
  return (applicationId: string, channel: string, json: string) => {
    const now = clock();
    const hour = expiryHour(now);
    const name = `${applicationId} ${channel}`;
    const found = parsed.get(name);
    if (found?.json === json && found.expiryHour === hour) return [...found.releases];
    const tokenOf = (fileId: string) => createDownloadToken(downloadKey, applicationId, fileId, now);
    const rows = JSON.parse(json) as ReleaseRow[];
    const offered = rows.map((row) => create(ReleaseSchema, toMessage(row, tokenOf)));
    parsed.set(name, { json, expiryHour: hour, releases: offered });
    return [...offered];
  };
}

function toMessage(row: ReleaseRow, tokenOf: (fileId: string) => string = () => '') {
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

const toRelease = (row: ReleaseRow) => ({ release: toMessage(row) });

const toSettings = (row: object) => ({ settings: fromRow(ReleaseSettingsSchema, row) });
