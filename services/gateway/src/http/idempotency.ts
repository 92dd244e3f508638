import { hash } from 'node:crypto';
import { IDEMPOTENCY_KEY_HEADER, IDEMPOTENCY_REQUEST_HEADER } from '@latchkey/audit/idempotency';
import { IDEMPOTENCY_KEY } from '@latchkey/contract/idempotency-key';
import { commonErrors } from '@latchkey/kit/errors/errors';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isStateChanging } from '../authentication/csrf.ts';
import { currentRequest } from '../request-context.ts';
import type { Route } from '../routing/route.ts';

export const idempotencyHeaders = z.object({
  [IDEMPOTENCY_KEY_HEADER]: z
    .string()
    .regex(IDEMPOTENCY_KEY)
    .optional()
    .meta({
      description: 'Any text, new for each request, that its repetitions have too. A repetition gets the first response.',
      examples: ['6e3f1c52-8f0d-4c1e-9a53-0b7a1f2d4c8e'],
    }),
});

/** True if requests of a route may carry an idempotency key (ADR 21). */
export const takesIdempotencyKey = ({ method, url }: Pick<Route, 'method' | 'url'>) =>
  isStateChanging(method) && url.startsWith('/api/v1/panel/');

declare module 'fastify' {
  interface FastifyRequest {
    /** SHA-256 of the body of a request with an idempotency key, in base64url. */
    bodyHash?: string;
  }
}

/**
 * Hashes the body of a request with a key, as part of its fingerprint. Parsers run outside of the
 * request's context when the body arrives after the head.
 */
export function hashBody(request: FastifyRequest, body: Buffer): void {
  if (request.headers[IDEMPOTENCY_KEY_HEADER] !== undefined) request.bodyHash = hash('sha256', body, 'base64url');
}

/**
 * Has the calls of a request carry its idempotency key, its fingerprint and its route.
 *
 * @throws `idempotency_key_invalid`
 */
export function addIdempotency(request: FastifyRequest, route: Route): void {
  const key = request.headers[IDEMPOTENCY_KEY_HEADER];
  const context = currentRequest();
  if (key === undefined || !context || !takesIdempotencyKey(route)) return;
  if (typeof key !== 'string' || !IDEMPOTENCY_KEY.test(key)) throw commonErrors.idempotency_key_invalid();
  // Parsed by routes that take bytes; others ignore it.
  const digest: unknown = request.headers['content-digest'];
  const bytes = Buffer.isBuffer(digest) ? digest.toString('base64url') : '';
  // These headers replace the body of a resumable upload, which comes later.
  const { 'upload-length': length = '', 'upload-metadata': metadata = '' } = request.raw.headers;
  const body = request.bodyHash ?? `${bytes}${length}${metadata}`;
  const fingerprint = hash('sha256', `${request.method} ${request.url}\n${body}`, 'base64url');
  context.idempotency = {
    [IDEMPOTENCY_KEY_HEADER]: key,
    [IDEMPOTENCY_REQUEST_HEADER]: `${fingerprint} ${route.method}:${route.url}`,
  };
}
