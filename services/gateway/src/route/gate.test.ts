import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import type { Authenticator } from '../authentication/authenticator.ts';
import { readGatewayConfig } from '../config.ts';
import { standing } from '../limit/limit.ts';
import type { Count, Limiter } from '../limit/limiter.ts';
import { createLimits } from '../limit/limits.ts';
import { Gate } from './gate.ts';
import { defineRoute } from './route.ts';

const limits = createLimits(readGatewayConfig({ REDIS_URL: 'redis://127.0.0.1' }));
const route = defineRoute({
  method: 'POST',
  url: '/made',
  access: 'public',
  tag: '',
  summary: '',
  message: '',
  limit: { limit: limits.apiKeyCreation, per: 'ip', successesOnly: true },
});

/** Lets one request in and then fails it; answers what was taken back. */
async function failOne(windowLeftMs: number): Promise<Count[]> {
  const refunded: Count[] = [];
  const limiter = {
    hit: async ({ limit }: Count) => standing(limit, 1, windowLeftMs),
    refund: async (count: Count) => void refunded.push(count),
  };
  const gate = new Gate({
    authenticator: {} as Authenticator,
    limiter: limiter as unknown as Limiter,
    limits,
    publicOrigin: 'http://localhost:8080',
  });
  const raw = { headers: {}, rawHeaders: [], socket: { remoteAddress: '192.0.2.1' } };
  const request = { id: 'r', ip: '192.0.2.1', method: 'POST', raw } as unknown as FastifyRequest;
  const reply = { header: () => reply } as unknown as FastifyReply;
  await gate.enter(request, reply, route);
  await gate.refund(request);
  return refunded;
}

it('takes back the place of a request that failed', async () => {
  expect(await failOne(60_000)).toEqual([{ limit: limits.apiKeyCreation, subject: '192.0.2.1' }]);
});

it('takes nothing from a window that did not count the request, however long it hung', async () => {
  expect(await failOne(0)).toEqual([]);
});
