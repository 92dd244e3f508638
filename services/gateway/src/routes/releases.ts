import {
  ARTIFACT_KEY_RULE,
  ARTIFACT_LABEL,
  ARTIFACT_LABEL_RULE,
  ARTIFACT_NAME,
  ARTIFACTS_MAX,
  artifactKey,
} from '@latchkey/contract/artifact';
import { describeLength, VERSION } from '@latchkey/contract/lengths';
import { RELEASES_LISTED_KB_MAX, RELEASES_LISTED_MAX } from '@latchkey/contract/page-size';
import {
  CHANNEL,
  CHANNEL_RULE,
  isSemver,
  RELEASE_NOTES_MAX,
  SEMVER,
  SEMVER_RULE,
  SIGNATURE_MAX,
  STABLE_CHANNEL,
  YANK_REASON_MAX,
} from '@latchkey/contract/release';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { formatCount } from '@latchkey/kit/validation/text';
import { type Release, ReleaseStatus } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { z } from 'zod';
import type { Principal } from '../authentication/credential.ts';
import type { Clients } from '../clients.ts';
import { errors } from '../errors.ts';
import { list } from '../routing/list.ts';
import { type ApplicationRef, checkReplay, resolveApplication } from '../routing/resolve-application.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationId, changeOf, EXAMPLE_IDS, idOf, textUpTo, timestamp, trimmedText, wholeNumber } from '../routing/schemas.ts';

const URL = '/api/v1/panel/releases';

const label = (description: string, example: string) =>
  z
    .string()
    .regex(ARTIFACT_LABEL, ARTIFACT_LABEL_RULE)
    .meta({ description, examples: [example] });

const artifact = {
  fileId: idOf('file', 'Id of a file of the application, from `uploadFile`.'),
  name: trimmedText(ARTIFACT_NAME, `Name for users, ${describeLength(ARTIFACT_NAME)}. Updaters see its extension.`),
  platform: label('`windows`, `darwin` or `linux` for the feeds, or any other.', 'windows'),
  arch: label('`x86_64` or `aarch64` (also `x64`, `arm64`) for the feeds, or any other.', 'x86_64'),
  kind: label('What it is. One artifact for each platform, arch and kind.', 'installer'),
  signature: textUpTo(SIGNATURE_MAX).exactOptional().meta({
    description: 'A minisign signature, as text or in Base64 (Tauri), or an Ed25519 signature in Base64 (Sparkle).',
  }),
};

const fields = {
  version: z
    .string()
    .refine(isSemver, SEMVER_RULE)
    .meta({
      pattern: SEMVER.source,
      maxLength: VERSION.max,
      description: `Semantic Version, ${describeLength(VERSION)}.`,
      examples: ['1.4.0'],
    }),
  channel: z
    .string()
    .regex(CHANNEL, CHANNEL_RULE)
    .meta({ description: `Channel, \`${STABLE_CHANNEL}\` by default.`, examples: [STABLE_CHANNEL, 'beta'] }),
  notes: textUpTo(RELEASE_NOTES_MAX).meta({ description: 'Notes for users.', examples: ['Faster start.'] }),
  rolloutPercent: wholeNumber({ min: 0, max: 100 }).meta({
    description: 'Share of the clients that are offered it.',
    examples: [100],
  }),
  artifacts: list(z.strictObject(artifact), 0, ARTIFACTS_MAX)
    .refine((artifacts) => new Set(artifacts.map(artifactKey)).size === artifacts.length, ARTIFACT_KEY_RULE)
    .meta({ uniqueItems: true }),
};

const createBody = z.strictObject(fields).partial().required({ version: true });
const updateBody = changeOf(fields);

const release = component('Release', {
  id: idOf('release', 'Release id.'),
  version: fields.version,
  channel: fields.channel,
  notes: z.string(),
  status: z.enum(['draft', 'published', 'yanked']),
  publishedAt: timestamp.nullable(),
  rolloutPercent: z.int(),
  artifacts: z.array(z.object({ ...artifact, name: z.string(), signature: z.string().optional() })),
});

const params = z.object({ id: idOf('release', 'Id of the release, from `listReleases`.') });
const query = z.object({ applicationId: applicationId.optional() });

const STATUS = { [ReleaseStatus.PUBLISHED]: 'published', [ReleaseStatus.YANKED]: 'yanked' } as Record<ReleaseStatus, string>;

const EXAMPLE_ARTIFACT = {
  fileId: EXAMPLE_IDS.file,
  name: 'Acme-1.4.0.exe',
  platform: 'windows',
  arch: 'x86_64',
  kind: 'installer',
};

interface OneRequest {
  readonly principal: Principal;
  readonly params: { readonly id: string };
  readonly query: { readonly applicationId?: string | undefined };
}

export function releaseRoutes({ clients }: RouteContext) {
  const { releases } = clients;
  const one = { params, query, data: release };
  return {
    listReleases: defineRoute(`GET ${URL}`, 'files:read', {
      application: 'query',
      summary: 'List the releases of an application',
      description: `Newest first, at most ${RELEASES_LISTED_MAX}, and at most ${formatCount(RELEASES_LISTED_KB_MAX)} KB of notes and artifacts.`,
      isLarge: true,
      data: z.array(release),
      message: 'Successfully fetched releases.',
      handle: async ({ application }) =>
        (await releases.listReleases(application)).releases.map((release) => toRecord({ release })),
    }),
    createRelease: defineRoute(`POST ${URL}`, 'releases:write', {
      application: 'query',
      summary: 'Create a release',
      description: 'A draft: updaters are not offered it before it is published.',
      body: createBody,
      examples: { beta: { version: '1.4.0', channel: 'beta', notes: 'Faster start.', artifacts: [EXAMPLE_ARTIFACT] } },
      data: release,
      failures: ['inspectFile'],
      message: 'Release created.',
      handle: async ({ application, body }) => {
        const { version, channel = STABLE_CHANNEL, notes = '', rolloutPercent = 100, artifacts = [] } = body;
        await inspectArtifacts(clients, application, artifacts);
        const given = { version, channel, notes, rolloutPercent, artifacts };
        return toRecord(await releases.createRelease({ ...application, release: given }));
      },
    }),
    getRelease: defineRoute(`GET ${URL}/:id`, 'files:read', {
      ...one,
      summary: 'Get a release',
      failures: ['application_forbidden'],
      message: 'Successfully fetched release.',
      handle: async (request) => toRecord(await findRelease(clients, request)),
    }),
    updateRelease: defineRoute(`PATCH ${URL}/:id`, 'releases:write', {
      ...one,
      summary: 'Change a draft',
      description: 'Changes the given properties. `artifacts` is the whole new list.',
      body: updateBody,
      examples: { notes: { notes: 'Faster start, and fixes.' } },
      failures: ['inspectFile', 'application_forbidden'],
      message: 'Release updated.',
      handle: async (request) => {
        const { ref } = await findRelease(clients, request);
        const { artifacts, ...rest } = request.body;
        if (artifacts) await inspectArtifacts(clients, ref, artifacts);
        return toRecord(await releases.updateRelease({ ...ref, ...rest, ...(artifacts && { artifacts: { artifacts } }) }));
      },
    }),
    deleteRelease: defineRoute(`DELETE ${URL}/:id`, 'releases:write', {
      params,
      query,
      summary: 'Delete a draft',
      failures: ['application_forbidden'],
      message: 'Release deleted.',
      handle: async (request) => {
        const { principal, params } = request;
        const ref = await findRelease(clients, request).then(
          (found) => found.ref,
          (err: unknown) => {
            // Repeated with its idempotency key, the deletion of a release that is gone succeeds.
            if (fromConnectError(err)?.reason !== 'release_not_found') throw err;
            return { accountId: principal.accountId, applicationId: '', releaseId: params.id };
          },
        );
        const { applicationId } = await releases.deleteRelease(ref);
        await checkReplay(clients, principal, applicationId);
      },
    }),
    publishRelease: defineRoute(`POST ${URL}/:id/publish`, 'releases:write', {
      ...one,
      summary: 'Publish a release',
      description: [
        'Updaters are offered it from then on. With signing keys, each artifact must have a signature that verifies.',
        `In the channel \`${STABLE_CHANNEL}\` it becomes the version of the application, and live clients are notified.`,
      ].join(' '),
      body: z.strictObject({ rolloutPercent: fields.rolloutPercent.optional() }),
      isBodyOptional: true,
      examples: { tenPercent: { rolloutPercent: 10 } },
      failures: ['inspectFile', 'application_forbidden'],
      message: 'Release published.',
      handle: async (request) => {
        const { ref, release, signingKeys } = await findRelease(clients, request);
        // The service rejects others, or replays a response.
        const artifacts = release?.status === ReleaseStatus.DRAFT ? release.artifacts : [];
        const files = await inspectArtifacts(clients, ref, artifacts, signingKeys);
        return toRecord(await releases.publishRelease({ ...ref, ...request.body, files }));
      },
    }),
    yankRelease: defineRoute(`POST ${URL}/:id/yank`, 'releases:write', {
      ...one,
      summary: 'Yank a release',
      description: 'Updaters are never offered it again. Yanking it again changes nothing.',
      body: z.strictObject({
        reason: textUpTo(YANK_REASON_MAX).optional().meta({ description: 'Reason, for the audit log.' }),
      }),
      isBodyOptional: true,
      examples: { crash: { reason: 'It crashes at start.' } },
      failures: ['application_forbidden'],
      message: 'Release yanked.',
      handle: async (request) => {
        const { ref } = await findRelease(clients, request);
        return toRecord(await releases.yankRelease({ ...ref, reason: request.body.reason ?? '' }));
      },
    }),
    setReleaseRollout: defineRoute(`POST ${URL}/:id/rollout`, 'releases:write', {
      ...one,
      summary: 'Change the roll-out of a release',
      body: z.strictObject({ rolloutPercent: fields.rolloutPercent }),
      examples: { half: { rolloutPercent: 50 } },
      failures: ['setRollout', 'application_forbidden'],
      message: 'Roll-out changed.',
      handle: async (request) => {
        const { ref } = await findRelease(clients, request);
        return toRecord(await releases.setRollout({ ...ref, ...request.body }));
      },
    }),
  };
}

/** The release of a path, whose application the principal may use. */
async function findRelease(clients: Clients, { principal, params: { id: releaseId }, query }: OneRequest) {
  const { accountId } = principal;
  if (query.applicationId === '') throw errors.application_not_found();
  const found = await clients.releases.getRelease({ accountId, releaseId, applicationId: query.applicationId ?? '' });
  const ref = await resolveApplication(clients, principal, found.applicationId);
  return { ...found, ref: { ...ref, releaseId } };
}

type Artifact = { readonly fileId: string; readonly signature?: string; readonly revision?: string };

/**
 * Reads the files of artifacts, and verifies their signatures if there are keys. One after the
 * other: an account's files are not read concurrently, and a waiting call takes a connection.
 */
async function inspectArtifacts(
  { files }: Clients,
  { accountId, applicationId }: ApplicationRef,
  artifacts: readonly Artifact[],
  publicKeys: string[] = [],
) {
  const deadlineAt = performance.now() + DEADLINES_MS.gatewayInspection;
  const inspected = [];
  for (const { fileId, signature = '', revision = '' } of artifacts) {
    const asked = { accountId, applicationId, fileId, signature, publicKeys };
    const found = await files.inspectFile(asked, { timeoutMs: Math.max(1, deadlineAt - performance.now()) });
    const { verifiedKey, byteSize } = found;
    const digests = {
      checksum: Buffer.from(found.checksum).toString('hex'),
      sha512: Buffer.from(found.sha512).toString('base64'),
    };
    inspected.push({ fileId, signature, revision, verifiedKey, byteSize, ...digests });
  }
  return inspected;
}

function toRecord({ release }: { readonly release?: Release | undefined }) {
  const { status, artifacts } = release as Release;
  const shown = artifacts.map((given) => ({ ...given, signature: given.signature || undefined }));
  return { ...release, status: STATUS[status] ?? 'draft', artifacts: shown };
}
