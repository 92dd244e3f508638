import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import type { Authenticator } from '../authentication/authenticator.ts';
import { checkVisited } from '../authentication/cross-site.ts';
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
  operationId: 'listNothing',
  tag: 'Files',
  summary: '',
  message: '',
  limit: { limit: limits.apiKeyCreation, per: 'ip', successesOnly: true },
});

/** A gate with a limiter that lets all in, and what that was told of. */
function gateOf(windowLeftMs: number) {
  const [counted, refunded]: [string[], Count[]] = [[], []];
  const limiter = {
    hit: async ({ limit }: Count) => {
      counted.push(limit.name);
      return standing(limit, 1, windowLeftMs);
    },
    refund: async (count: Count) => void refunded.push(count),
  };
  const gate = new Gate({
    authenticator: {} as Authenticator,
    limiter: limiter as unknown as Limiter,
    limits,
    publicOrigin: 'http://localhost:8080',
  });
  return { gate, counted, refunded };
}

const reply = { header: () => reply } as unknown as FastifyReply;

function requestWith(headers: Record<string, string>): FastifyRequest {
  const raw = { headers, rawHeaders: [], socket: { remoteAddress: '192.0.2.1' } };
  return { id: 'r', ip: '192.0.2.1', method: 'POST', protocol: 'http', raw } as unknown as FastifyRequest;
}

/** Lets one request in and then fails it; answers what was taken back. */
async function failOne(windowLeftMs: number): Promise<Count[]> {
  const { gate, refunded } = gateOf(windowLeftMs);
  const request = requestWith({});
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

it('counts nothing for the limit of a route of what a page of another origin has its visitor ask for', async () => {
  const { gate, counted } = gateOf(60_000);
  const evil = requestWith({ origin: 'https://evil.test', host: 'localhost:8080' });
  await expect(gate.enter(evil, reply, route)).rejects.toMatchObject({ reason: 'csrf_invalid' });
  const picture = { headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'image' } } as unknown as IncomingMessage;
  const refusing = { ...route, admit: () => checkVisited(picture) };
  await expect(gate.enter(requestWith({}), reply, refusing)).rejects.toMatchObject({ reason: 'csrf_invalid' });
  expect(counted).toEqual(['ip', 'ip']);
  await gate.enter(requestWith({ origin: 'http://localhost:8080' }), reply, route);
  expect(counted).toEqual(['ip', 'ip', 'ip', limits.apiKeyCreation.name]);
});

const NO_CREDENTIAL = 'No API key and no session. Send an API key as Authorization: Bearer <key>, or sign in';

it.each([
  ['files:read', {}, 'api_key_invalid', NO_CREDENTIAL],
  ['files:read', { cookie: 'other=1' }, 'api_key_invalid', NO_CREDENTIAL],
  ['session', {}, 'unauth', 'No session. Sign in first'],
  [
    'files:read',
    { authorization: 'Basic a' },
    'api_key_invalid',
    'The API key is not valid. Send it as Authorization: Bearer <key>',
  ],
  ['session', { authorization: '' }, 'api_key_invalid', 'The API key is not valid. Send it as Authorization: Bearer <key>'],
] as const)('says what is missing where %s is asked for with %j', async (access, headers, code, message) => {
  const { gate } = gateOf(60_000);
  await expect(gate.enter(requestWith(headers), reply, { ...route, access })).rejects.toMatchObject({ code, message });
});

it.each([
  ['cross-site', 'document', 'done'],
  ['cross-site', undefined, 'done'],
  ['cross-site', 'image', 'csrf_invalid'],
  ['cross-site', 'iframe', 'csrf_invalid'],
  ['cross-site', 'empty', 'csrf_invalid'],
  ['same-origin', 'empty', 'done'],
  [undefined, 'image', 'done'],
])('takes for a visit what comes %s for a %s: %s', (site, destination, expected) => {
  const headers = { ...(site && { 'sec-fetch-site': site }), ...(destination && { 'sec-fetch-dest': destination }) };
  const outcome = () => checkVisited({ headers } as IncomingMessage);
  if (expected === 'done') expect(outcome).not.toThrow();
  else expect(outcome).toThrow(expect.objectContaining({ reason: expected }));
});
