import { prepareCaller } from './account.ts';
import { load, type Target } from './load.ts';
import { type Servers, type Shape, type Side, startBaseline, startOurs } from './ours.ts';
import { cpuSecondsOf } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

/** A process is at its usual speed after some 10,000 requests, and the deployed shape has several to warm up. */
const WARM_UP_SECONDS = 15;

/**
 * F1 and F2: CPU per authenticated `get-application-settings` of all our processes, over that of a bare Fastify handler with one primary-key
 * SELECT, in turns.
 */
export async function measureSettings(servers: Servers, shape: Shape, rounds: number, seconds: number): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const baseline = await startBaseline(servers);
  try {
    const { headers, applicationId } = await prepareCaller(ours.baseUrl);
    const targets = {
      ours: { url: `${ours.baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`, headers },
      baseline: { url: `${baseline.baseUrl}/settings?applicationId=${applicationId}` },
    };
    for (const target of Object.values(targets)) await load(target, WARM_UP_SECONDS);
    const found = { ours: [] as number[], baseline: [] as number[], ratio: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      const a = await microsecondsPerRequest(ours, targets.ours, seconds);
      const b = await microsecondsPerRequest(baseline, targets.baseline, seconds);
      found.ours.push(a);
      found.baseline.push(b);
      found.ratio.push(a / b);
    }
    return {
      id: shape === 'standalone' ? 'F1' : 'F2',
      what: `get-application-settings, ${shape}, CPU per request`,
      value: `${median(found.ours).toFixed(0)} µs`,
      baseline: `${median(found.baseline).toFixed(0)} µs`,
      result: `${median(found.ratio).toFixed(2)} (${range(found.ratio, 2)})`,
      goal: shape === 'standalone' ? '≤ 1.8' : '≤ 3.5',
    };
  } finally {
    await Promise.all([ours.child.stop(), baseline.child.stop()]);
  }
}

async function microsecondsPerRequest(side: Side, target: Target, seconds: number): Promise<number> {
  const before = cpuSecondsOf(side.measured());
  const requests = await load(target, seconds);
  return ((cpuSecondsOf(side.measured()) - before) / requests) * 1e6;
}
