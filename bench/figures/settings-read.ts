import autocannon from 'autocannon';
import { type Caller, prepareCaller, publishRelease } from '../harness/account.ts';
import { type Servers, type Shape, type Side, startBaseline, startOurs } from '../harness/ours.ts';
import { compare, type Figure } from '../harness/report.ts';

/**
 * A process has its usual speed after some 10,000 requests, and there are several in the deployed
 * shape.
 */
const WARM_UP_SECONDS = 15;
const SECONDS = 4;
const CONNECTIONS = 32;

interface Target {
  readonly url: string;
  readonly headers?: Record<string, string>;
}

/** Latchkey and a bare Fastify handler with one primary-key SELECT, both warm. */
async function startSides(
  servers: Servers,
  shape: Shape,
  prepareTarget: (baseUrl: string, caller: Caller) => Target | Promise<Target> = settingsOf,
) {
  const ours = await startOurs(servers, shape);
  const baseline = await startBaseline(servers);
  const caller = await prepareCaller(ours.baseUrl);
  const target = await prepareTarget(ours.baseUrl, caller);
  const bareTarget = { url: `${baseline.baseUrl}/settings?applicationId=${caller.applicationId}` };
  for (const each of [target, bareTarget]) await load(each, WARM_UP_SECONDS);
  return { ours, target, baseline, bareTarget };
}

const settingsOf = (baseUrl: string, { headers, applicationId }: Caller): Target => {
  return { url: `${baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`, headers };
};

/**
 * F1 and F2: CPU per authenticated `get-application-settings` of all our processes, over that of
 * the bare handler.
 */
export async function measureSettings(servers: Servers, shape: Shape, rounds: number): Promise<Figure> {
  const { ours, target, baseline, bareTarget } = await startSides(servers, shape);
  const [id, goal] = shape === 'standalone' ? ['F1', '≤ 1.2'] : ['F2', '≤ 3.8'];
  return compare(
    { id, goal, what: `get-application-settings, ${shape}, CPU per request`, rounds, unit: 'µs', digits: 0 },
    () => microsecondsPerRequest(ours, target),
    () => microsecondsPerRequest(baseline, bareTarget),
  );
}

/** F14: CPU per read of an update feed, over that of the same bare handler. */
export async function measureFeed(servers: Servers, rounds: number): Promise<Figure> {
  const { ours, target, baseline, bareTarget } = await startSides(servers, 'standalone', publishRelease);
  return compare(
    { id: 'F14', goal: '≤ 1.5', what: 'latest.json, standalone, CPU per request', rounds, unit: 'µs', digits: 0 },
    () => microsecondsPerRequest(ours, target),
    () => microsecondsPerRequest(baseline, bareTarget),
  );
}

/** F11: the same request, in requests a second, over those of the bare handler. */
export async function measureThroughput(servers: Servers, rounds: number): Promise<Figure> {
  const { target, bareTarget } = await startSides(servers, 'standalone');
  const perSecond = async (each: Target) => (await load(each, SECONDS, 64)) / SECONDS;
  return compare(
    { id: 'F11', goal: '≥ 0.85', what: 'get-application-settings, standalone, requests a second', rounds, unit: '/s', digits: 0 },
    () => perSecond(target),
    () => perSecond(bareTarget),
  );
}

async function microsecondsPerRequest(side: Side, target: Target): Promise<number> {
  let requests = 0;
  const seconds = await side.cpuSeconds(async () => {
    requests = await load(target, SECONDS);
  });
  return (seconds / requests) * 1e6;
}

/** @returns the number of responses, all with 200 */
async function load(target: Target, seconds: number, connections = CONNECTIONS): Promise<number> {
  const result = await autocannon({ ...target, connections, duration: seconds });
  const { non2xx, errors } = result;
  if (non2xx > 0 || errors > 0) throw new Error(`${non2xx} failures and ${errors} errors from ${target.url}`);
  return result['2xx'];
}
