import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import { type ReleaseService, ReleaseStatus } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { createDownloadToken } from './download-token.ts';
import { detachFile, getFeed, resolveDownload } from './feed.ts';
import * as releases from './release.ts';
import * as settings from './release-settings.ts';

const STATUSES = { draft: ReleaseStatus.DRAFT, published: ReleaseStatus.PUBLISHED, yanked: ReleaseStatus.YANKED };

export function releaseRpc(ctx: AppsContext): ServiceImpl<typeof ReleaseService> {
  return {
    async createRelease(request, call) {
      if (!request.release) throw errors.release_invalid();
      return { release: toMessage(await releases.createRelease(actingFor(ctx, call), request, request.release)) };
    },
    async listReleases(ref) {
      return { releases: (await releases.listReleases(ctx, ref)).map((row) => toMessage(row)) };
    },
    async getRelease(ref) {
      const found = await releases.getRelease(ctx, ref);
      return { release: toMessage(found), applicationId: found.application_id, signingKeys: found.signing_keys };
    },
    async updateRelease(request, call) {
      const { version, channel, notes, rolloutPercent, artifacts } = request;
      const change = { version, channel, notes, rolloutPercent, artifacts: artifacts?.artifacts };
      return { release: toMessage(await releases.updateRelease(actingFor(ctx, call), request, change)) };
    },
    async deleteRelease(ref, call) {
      await releases.deleteRelease(actingFor(ctx, call), ref);
      return {};
    },
    async publishRelease(request, call) {
      const { files, rolloutPercent } = request;
      return { release: toMessage(await releases.publishRelease(actingFor(ctx, call), request, files, rolloutPercent)) };
    },
    async yankRelease(ref, call) {
      return { release: toMessage(await releases.yankRelease(actingFor(ctx, call), ref)) };
    },
    async setRollout(request, call) {
      return { release: toMessage(await releases.setRollout(actingFor(ctx, call), request, request.rolloutPercent)) };
    },
    async getReleaseSettings(ref) {
      return { settings: toSettings(await settings.getReleaseSettings(ctx, ref)) };
    },
    async updateReleaseSettings(request, call) {
      const { publicUpdates, signingKeys } = request;
      const given = { publicUpdates, signingKeys: signingKeys?.keys };
      return { settings: toSettings(await settings.updateReleaseSettings(actingFor(ctx, call), request, given)) };
    },
    async detachFile({ applicationId, fileId, onlyCheck }) {
      return { isNeeded: await detachFile(ctx, applicationId, fileId, onlyCheck) };
    },
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

const toSettings = ({ public_updates: publicUpdates, signing_keys: signingKeys }: settings.ReleaseSettings) => {
  return { publicUpdates, signingKeys };
};
