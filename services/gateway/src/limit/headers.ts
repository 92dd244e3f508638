import type { DomainError } from '@latchkey/kit/errors';
import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';
import type { Standing } from './limit.ts';

/** The refusal of an event that a limit denied. */
export function denial({ limit, resetMs }: Standing): DomainError {
  return errors.rate_limit_reached({
    policy: limit.name,
    limit: String(limit.max),
    windowSeconds: String(limit.windowMs / 1000),
    remaining: '0',
    retryAfterSeconds: String(wholeSeconds(resetMs)),
  });
}

/** Sets the headers of draft-ietf-httpapi-ratelimit-headers for where a limit stands. */
export function setLimitHeaders(reply: FastifyReply, { limit, remaining, resetMs }: Standing): void {
  reply.header('ratelimit-policy', `"${limit.name}";q=${limit.max};w=${limit.windowMs / 1000}`);
  reply.header('ratelimit', `"${limit.name}";r=${remaining};t=${wholeSeconds(resetMs)}`);
}

function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
