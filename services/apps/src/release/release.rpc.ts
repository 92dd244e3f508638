import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { actingFor, bindCalls } from '@latchkey/audit/actor';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import { type ReleaseService, ReleaseStatus } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { createDownloadToken } from './download-token.ts';
import { detachFile, getFeed, resolveDownload } from './feed.ts';
import * as releases from './release.ts';
import * as settings from './release-settings.ts';

const STATUSES = { draft: ReleaseStatus.DRAFT, published: ReleaseStatus.PUBLISHED, yanked: ReleaseStatus.YANKED };

export function releaseRpc(ctx: AppsContext): RpcImpl<typeof ReleaseService> {
  const bind = bindCalls((call) => actingFor(ctx, call));
  return {
    createRelease: bind(async (acting, request) => {
      if (!request.release) throw errors.release_invalid();
      return releases.createRelease(acting, request, request.release);
    }, toRelease),
    listReleases: async (ref) => ({ releases: (await releases.listReleases(ctx, ref)).map((row) => toMessage(row)) }),
    async getRelease(ref) {
      const found = await releases.getRelease(ctx, ref);
      return { release: toMessage(found), applicationId: found.application_id, signingKeys: found.signing_keys };
    },
    updateRelease: bind((acting, request) => {
      return releases.updateRelease(acting, request, { ...request, artifacts: request.artifacts?.artifacts });
    }, toRelease),
    deleteRelease: bind(releases.deleteRelease),
    publishRelease: bind(releases.publishRelease, toRelease),
    yankRelease: bind(releases.yankRelease, toRelease),
    setRollout: bind(releases.setRollout, toRelease),
    getReleaseSettings: async (ref) => toSettings(await settings.getReleaseSettings(ctx, ref)),
    updateReleaseSettings: bind(settings.updateReleaseSettings, toSettings),
    detachFile: async (request) => ({ isNeeded: await detachFile(ctx, request) }),
    async getFeed(request) {
      const feed = await getFeed(ctx, request.applicationId, request.channel, request.httpKey);
      const now = ctx.clock();
      const tokenOf = (fileId: string) => createDownloadToken(ctx.downloadKey, feed.applicationId, fileId, now);
      return { ...feed, releases: feed.releases.map((row) => toMessage(row, tokenOf)) };
    },
    resolveDownload: ({ applicationId, token }) => resolveDownload(ctx, applicationId, token),
  };
}

function toMessage(row: releases.ReleaseWithArtifacts, tokenOf: (fileId: string) => string = () => '') {
  const { id, version, channel, notes } = row;
  return {
    ...{ id, version, channel, notes },
    status: STATUSES[row.status],
    // In a feed, which is stored as JSON, times are texts.
    ...(row.published_at && { publishedAt: timestampFromDate(new Date(row.published_at)) }),
    rolloutPercent: row.rollout_percent,
    artifacts: row.artifacts.map(({ file_id: fileId, byte_size, ...artifact }) => ({
      ...artifact,
      fileId,
      byteSize: BigInt(byte_size),
      downloadToken: tokenOf(fileId),
    })),
  };
}

const toRelease = (row: releases.ReleaseWithArtifacts) => ({ release: toMessage(row) });

const toSettings = ({ public_updates: publicUpdates, signing_keys: signingKeys }: settings.ReleaseSettings) => {
  return { settings: { publicUpdates, signingKeys } };
};
