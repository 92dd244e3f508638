import { rateLimitHeaders } from '@latchkey/kit/http/rate-limit-headers';
import type { FastifyReply } from 'fastify';
import { expect, it } from 'vitest';
import { readGatewayConfig } from '../config.ts';
import { createRateLimits, type Limit, limitReached, setLimitHeaders, tighter, toLimitState } from './rate-limits.ts';

const LIMIT: Limit = { name: 'ip', max: 3, windowMs: 60_000 };
const OTHER: Limit = { name: 'principal', max: 2, windowMs: 60_000 };

it('a limit allows as many events as its maximum', () => {
  const states = [2, 3, 4].map((count) => toLimitState(LIMIT, count, -5));
  expect(states.map(({ allowed, remaining, resetMs }) => [allowed, remaining, resetMs])).toEqual([
    [true, 1, 0],
    [true, 0, 0],
    [false, 0, 0],
  ]);
});

it('the tighter limit is the one that rejected, else the one with less left', () => {
  expect(tighter(toLimitState(LIMIT, 1, 1), toLimitState(OTHER, 1, 1)).limit).toBe(OTHER);
  expect(tighter(toLimitState(LIMIT, 3, 1), toLimitState(OTHER, 1, 1)).limit).toBe(LIMIT);
  const [last, rejected] = [toLimitState(LIMIT, 3, 1), toLimitState(OTHER, 3, 1)];
  expect([tighter(last, rejected), tighter(rejected, last)]).toEqual([rejected, rejected]);
});

it('headers have the policy and the state, and of a rejection when to try again', () => {
  const headers: Record<string, string> = {};
  const header = (name: string, value: string) => Object.assign(headers, { [name]: value });
  setLimitHeaders({ header } as unknown as FastifyReply, toLimitState(LIMIT, 1, 59_001));
  expect(headers).toEqual({ 'ratelimit-policy': '"ip";q=3;w=60', ratelimit: '"ip";r=2;t=60' });
  const rejection = rateLimitHeaders(limitReached(toLimitState(LIMIT, 4, 1_001)));
  expect(rejection).toEqual({ 'ratelimit-policy': '"ip";q=3;w=60', ratelimit: '"ip";r=0;t=2', 'retry-after': '2' });
  expect(rateLimitHeaders(limitReached(toLimitState(LIMIT, 4, 0)))['retry-after']).toBe('1');
});

it('the limits have defaults', () => {
  const limits = createRateLimits(readGatewayConfig({ REDIS_URL: 'redis://localhost' }));
  expect(Object.values(limits).map(({ name, max, windowMs }) => `${name} ${max}/${windowMs / 1_000}s`)).toEqual([
    'ip 600/60s',
    'principal 300/60s',
    'sign-up 10/60s',
    'sign-in 10/60s',
    'sign-in-failures 10/900s',
    'oidc-visits 10/60s',
    'token-exchange 10/60s',
    'two-factor-disabling 10/60s',
    'api-key-creation 10/3600s',
    'uploads 10/60s',
    'update-feeds 120/60s',
    'avatar-uploads 10/60s',
  ]);
});
