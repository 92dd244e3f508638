import { denialHeaders } from '@latchkey/kit/http/denial-headers';
import type { FastifyReply } from 'fastify';
import { describe, expect, it } from 'vitest';
import { readGatewayConfig } from '../config.ts';
import { denial, setLimitHeaders } from './headers.ts';
import { type Limit, standing, tighter } from './limit.ts';
import { createLimits } from './limits.ts';

const LIMIT: Limit = { name: 'ip', max: 3, windowMs: 60_000 };

function headersOf(set: (reply: FastifyReply) => void): Record<string, string> {
  const headers: Record<string, string> = {};
  const header = (name: string, value: string) => {
    headers[name] = value;
  };
  set({ header } as unknown as FastifyReply);
  return headers;
}

describe('a standing', () => {
  it('allows as many events as the limit and no more', () => {
    expect([1, 2, 3, 4, 5].map((count) => standing(LIMIT, count, 1_000).allowed)).toEqual([true, true, true, false, false]);
    expect([1, 2, 3, 4, 5].map((count) => standing(LIMIT, count, 1_000).remaining)).toEqual([2, 1, 0, 0, 0]);
  });

  it('never ends in the past', () => {
    expect(standing(LIMIT, 1, -5).resetMs).toBe(0);
  });
});

describe('the tighter of two standings', () => {
  const other: Limit = { name: 'principal', max: 2, windowMs: 60_000 };

  it('is the one with less left', () => {
    expect(tighter(standing(LIMIT, 1, 1), standing(other, 1, 1)).limit.name).toBe('principal');
    expect(tighter(standing(LIMIT, 3, 1), standing(other, 1, 1)).limit.name).toBe('ip');
    expect(tighter(undefined, standing(other, 1, 1)).limit.name).toBe('principal');
  });

  it('is the one that denied, also beside one that has just nothing left', () => {
    const last = standing(LIMIT, 3, 1);
    const denied = standing(other, 3, 1);
    expect([last.remaining, denied.remaining]).toEqual([0, 0]);
    expect(tighter(last, denied)).toBe(denied);
    expect(tighter(denied, last)).toBe(denied);
  });
});

describe('the headers of a limit', () => {
  it('say the policy and where it stands', () => {
    expect(headersOf((reply) => setLimitHeaders(reply, standing(LIMIT, 1, 59_001)))).toEqual({
      'ratelimit-policy': '"ip";q=3;w=60',
      ratelimit: '"ip";r=2;t=60',
    });
  });

  it('say of a denial when to come back, in whole seconds and never at once', () => {
    const headersAt = (resetMs: number) => denialHeaders(denial(standing(LIMIT, 4, resetMs)));
    expect(headersAt(1_001)).toEqual({
      'ratelimit-policy': '"ip";q=3;w=60',
      ratelimit: '"ip";r=0;t=2',
      'retry-after': '2',
    });
    expect(headersAt(0)['retry-after']).toBe('1');
  });
});

describe('the limits', () => {
  it('are those of the decisions unless set', () => {
    const limits = createLimits(readGatewayConfig({ REDIS_URL: 'redis://localhost' }));
    expect(Object.values(limits).map(({ name, max, windowMs }) => `${name} ${max}/${windowMs / 1_000}s`)).toEqual([
      'ip 600/60s',
      'principal 300/60s',
      'sign-up 10/60s',
      'sign-in 10/60s',
      'sign-in-failures 10/900s',
      'oidc-visits 10/60s',
      'two-factor-disabling 10/60s',
      'api-key-creation 10/3600s',
      'uploads 10/60s',
      'avatar-uploads 10/60s',
    ]);
  });
});
