import type { DomainError } from '@latchkey/kit/errors';
import { Counter } from '@latchkey/kit/metrics/instrument';
import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';
import type { Standing } from './limit.ts';

const refusals = new Counter({
  name: 'latchkey_rate_limit_refusals_total',
  help: 'Requests that a limit denied, by the name that the limit has in the RateLimit headers.',
  labels: ['limit'],
});

/** The refusal of an event that a limit denied, which is counted. */
export function denial({ limit, resetMs }: Standing): DomainError {
  refusals.add(1, limit.name);
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
