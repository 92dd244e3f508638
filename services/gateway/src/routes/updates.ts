import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DOWNLOAD_URL_LIFETIME_S } from '@latchkey/contract/download-url';
import { isSemver, SEMVER_RULE } from '@latchkey/contract/release';
import { namesEntity } from '@latchkey/kit/http/entity-tag';
import type { GetFeedResponse, Release, ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import type { FastifyReply } from 'fastify';
import semver from 'semver';
import { z } from 'zod';
import { readCredential } from '../authentication/credential.ts';
import { errors } from '../errors.ts';
import { defineRoute, type RouteContext, type RouteRequest } from '../routing/route.ts';
import { applicationId } from '../routing/schemas.ts';
import { appcast, electronUpdate, latestJson, tauriUpdate } from '../updates/feed-formats.ts';
import { ELECTRON_FEEDS, tauriArtifact } from '../updates/offered-artifacts.ts';
import { isOffered } from '../updates/rollout.ts';

const URL = '/api/v1/updates/:applicationId/:channel';

const text = (description: string, example: string) => z.string().meta({ description, examples: [example] });

const feedParams = z.object({ applicationId, channel: text('Channel.', 'stable') });

const query = z.object({
  client: z
    .string()
    .optional()
    .meta({
      description: 'Stable name of the client, for roll-outs. Without it, only complete roll-outs are offered.',
      examples: ['f3b1c2'],
    }),
});

/** Seconds that clients and proxies may cache a feed. */
const MAX_AGE_S = 60;

type FeedRequest = Pick<
  RouteRequest<'public', undefined, unknown, z.output<typeof query>, z.output<typeof feedParams>>,
  'params' | 'query' | 'raw' | 'reply'
>;

interface Feed extends GetFeedResponse {
  /** The releases that the client is offered, the highest version first. */
  readonly offered: readonly Release[];
  readonly urlOf: (artifact: ReleaseArtifact) => string;
}

export function updateRoutes({ clients, limits, publicUrl }: RouteContext) {
  const { releases, files } = clients;
  const base = publicUrl.replace(/\/+$/, '');
  const limit = { limit: limits.updateFeeds, per: 'application' } as const;

  async function readFeed({ params, query: { client }, raw }: FeedRequest): Promise<Feed> {
    const { applicationId, channel } = params;
    const feed = await releases.getFeed({ applicationId, channel, ...readHttpKey(raw) });
    const urlOf = ({ downloadToken, name }: ReleaseArtifact) =>
      `${base}/api/v1/updates/${applicationId}/${channel}/download/${downloadToken}/${encodeURIComponent(name)}`;
    return { ...feed, offered: feed.releases.filter((release) => isOffered(release, client)), urlOf };
  }

  /** A feed; `render` returns undefined if there is no release for it. */
  const feedRoute = (name: string, bytesResponse: string, summary: string, render: (feed: Feed) => string | undefined) =>
    defineRoute(`GET ${URL}/${name}`, 'public', {
      summary,
      description: '`Authorization: Bearer <httpKey>`, unless the application has public updates.',
      ...{ limit, params: feedParams, query, bytesResponse, failures: ['getFeed'] },
      handle: async (request) => {
        const feed = await readFeed(request);
        const body = render(feed);
        if (body === undefined) throw errors.route_not_found();
        return sendFeed(request, feed, bytesResponse, body);
      },
    });

  const electronRoutes = Object.entries(ELECTRON_FEEDS).map(([name, [system, artifactsOf]]) => {
    const operationId = `getFeed${name.replace(/(?:^|[-.])(\w)/g, (_, letter: string) => letter.toUpperCase())}`;
    const route = feedRoute(name, 'text/yaml', `Get the feed of electron-updater for ${system}`, ({ offered, urlOf }) => {
      const release = offered.find((found) => artifactsOf(found).length > 0);
      return release && electronUpdate(release, artifactsOf(release), urlOf);
    });
    return [operationId, route] as const;
  });

  return {
    getFeedTauri: defineRoute(`GET ${URL}/tauri/:target/:arch/:version`, 'public', {
      summary: 'Get the update for Tauri’s updater',
      description: '204 if there is no higher version. `Authorization: Bearer <httpKey>`, unless the updates are public.',
      limit,
      params: feedParams.extend({
        target: text('Platform, `{{target}}`.', 'windows'),
        arch: text('Architecture, `{{arch}}`.', 'x86_64'),
        version: text('Version of the client, `{{current_version}}`.', '1.3.0'),
      }),
      query,
      bytesResponse: 'application/json',
      failures: ['getFeed'],
      handle: async (request) => {
        const feed = await readFeed(request);
        const { target, arch, version } = request.params;
        if (!isSemver(version)) throw errors.request_invalid().withDetails({ path: 'params.version', message: SEMVER_RULE });
        for (const release of feed.offered) {
          if (semver.compare(release.version, version) <= 0) break;
          const artifact = tauriArtifact(release, target, arch);
          if (artifact) return sendFeed(request, feed, 'application/json', tauriUpdate(release, artifact, feed.urlOf));
        }
        return request.reply.headers(cacheHeaders(feed)).code(204).send();
      },
    }),
    ...Object.fromEntries(electronRoutes),
    getFeedAppcastXml: feedRoute('appcast.xml', 'application/xml', 'Get the appcast for Sparkle', (feed) =>
      appcast(feed.applicationName, feed.offered, feed.urlOf),
    ),
    getFeedLatestJson: feedRoute('latest.json', 'application/json', 'Get the latest release', (feed) => {
      return feed.offered[0] && latestJson(feed.offered[0], feed.urlOf);
    }),
    downloadUpdate: defineRoute(`GET ${URL}/download/:token/:name`, 'public', {
      summary: 'Download a file of a release',
      description: 'URLs of feeds. They need no credential, are valid for a day, and get 404 once the release is yanked.',
      limit,
      params: feedParams.extend({
        token: text('Signature of the URL.', 'AZ…'),
        name: text('Name of the artifact.', 'Acme-1.4.0.exe'),
      }),
      redirects: { when: 'To the bytes of the file, with ranges.', always: true },
      failures: ['resolveDownload', 'createDownloadUrl'],
      handle: async ({ params, reply }) => {
        const { accountId, fileId } = await releases.resolveDownload(params);
        const ref = { accountId, applicationId: params.applicationId, fileId };
        const { url } = await files.createDownloadUrl({ ...ref, lifetimeSeconds: DOWNLOAD_URL_LIFETIME_S.max });
        return reply.header('cache-control', 'no-store').redirect(url);
      },
    }),
  };
}

/** The HTTP key of a request. A malformed one is empty, which matches no key. */
function readHttpKey(raw: IncomingMessage): { readonly httpKey?: string } {
  if (raw.headers.authorization === undefined) return {};
  const credential = readCredential(raw);
  return { httpKey: 'text' in credential ? credential.text : '' };
}

const cacheHeaders = ({ publicUpdates }: Feed) => ({
  'cache-control': `${publicUpdates ? 'public' : 'private'}, max-age=${MAX_AGE_S}`,
  vary: 'Authorization',
});

function sendFeed({ raw, reply }: FeedRequest, feed: Feed, type: string, body: string): FastifyReply {
  const etag = `"${hash('sha256', body, 'base64url')}"`;
  reply.headers({ ...cacheHeaders(feed), etag });
  const ifNoneMatch = raw.headers['if-none-match'];
  if (ifNoneMatch !== undefined && namesEntity(ifNoneMatch, etag)) return reply.code(304).send();
  return reply.type(`${type}; charset=utf-8`).send(body);
}
