import { AVATAR_BYTES_MAX, AVATAR_PIXELS_MAX } from '@latchkey/contract/avatar';
import { networkOf } from '@latchkey/kit/http/client-ip';
import { namesEntity } from '@latchkey/kit/http/entity-tag';
import { UNTRUSTED_CONTENT_POLICY } from '@latchkey/kit/http/response';
import { UploadAvatarResponseSchema } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { errors } from '../errors.ts';
import { digestHeaders, requireDigest } from '../http/content-digest.ts';
import { sendContinue } from '../http/request-body.ts';
import { readRequestBody } from '../routing/read-request-body.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { idText } from '../routing/schemas.ts';

const AVATAR_URL = '/api/v1/panel/avatar';

export function avatarUrlOf(avatarId: string): string {
  return `${AVATAR_URL}?v=${avatarId}`;
}

/** The image of an id never changes, and is only for its owner. Scripts in it must not run. */
const IMAGE_HEADERS = {
  'cache-control': 'private, max-age=86400, immutable',
  'content-security-policy': UNTRUSTED_CONTENT_POLICY,
  // The cache of a browser may outlive the session.
  vary: 'Cookie',
  'cross-origin-resource-policy': 'same-origin',
};

export const avatarRoutes = ({ clients, filesData, limits }: RouteContext) => ({
  uploadAvatar: defineRoute('POST /api/v1/panel/upload-avatar', 'session', {
    summary: 'Upload an avatar',
    description: [
      `The body is a PNG, JPEG or WebP image of up to ${AVATAR_BYTES_MAX / 1024 / 1024} MiB and ${AVATAR_PIXELS_MAX / 1_000_000} million pixels, 65,535 to a side, without animation. Its bytes alone show its type.`,
      'It is resized to 256 x 256 at most, turned upright, and stored as WebP without metadata. The earlier avatar is deleted afterwards.',
    ].join(' '),
    limit: { limit: limits.avatarUploads, per: 'account' },
    bytesBody: 'any',
    headers: digestHeaders,
    data: z.object({ avatarUrl: z.string().meta({ description: 'Path of this avatar. Every upload has a new one.' }) }),
    failures: ['content_digest_required', 'avatar_too_large', UploadAvatarResponseSchema],
    message: 'Avatar uploaded.',
    handle: async (request) => {
      requireDigest(request.headers);
      const body = readRequestBody(request);
      const { accountId, byteSize, idempotency } = body;
      if (byteSize !== undefined && byteSize > AVATAR_BYTES_MAX) throw errors.avatar_too_large();
      const repeated = idempotency && (await clients.avatars.findUploadedAvatar({ accountId }));
      if (repeated?.avatarId !== undefined) return { avatarUrl: avatarUrlOf(repeated.avatarId) };
      sendContinue(request.reply.raw);
      const { avatarId } = await filesData.uploadAvatar({ ...body, clientNetwork: networkOf(request.clientIp) });
      return { avatarUrl: avatarUrlOf(avatarId) };
    },
  }),
  getAvatar: defineRoute(`GET ${AVATAR_URL}`, 'session', {
    summary: 'Get the avatar',
    description: 'The avatar of the session’s account. The image that an OpenID Connect issuer named is not served here.',
    query: z.object({
      v: idText.optional().meta({
        description: 'Id of the upload, from `avatarUrl`: 404 if the avatar has another id.',
        format: 'uuid',
        examples: ['019a9e42-6a55-73d8-bb04-5e7a9c1f3d26'],
      }),
    }),
    bytesResponse: 'image/webp',
    handle: async ({ principal: { accountId }, query: { v }, raw, reply }) => {
      const found = await clients.avatars.getAvatar({ accountId, ...(v !== undefined && { avatarId: v }) });
      sendImage(reply, found, raw.headers['if-none-match']);
    },
  }),
  removeAvatar: defineRoute(`DELETE ${AVATAR_URL}`, 'session', {
    summary: 'Remove the avatar',
    description:
      '`avatarUrl` of the account is the OpenID Connect issuer’s image again, or null. Succeeds also where there is no avatar.',
    message: 'Avatar removed.',
    handle: ({ principal: { accountId } }) => clients.avatars.removeAvatar({ accountId }),
  }),
});

function sendImage(reply: FastifyReply, found: { avatarId: string; image: Uint8Array }, ifNoneMatch: string | undefined): void {
  const etag = `"${found.avatarId}"`;
  reply.headers({ ...IMAGE_HEADERS, etag });
  if (ifNoneMatch !== undefined && namesEntity(ifNoneMatch, etag)) void reply.code(304).send();
  else void reply.type('image/webp').send(Buffer.from(found.image.buffer, found.image.byteOffset, found.image.byteLength));
}
