import autocannon from 'autocannon';
import { type Caller, prepareCaller } from '../harness/account.ts';
import { type Servers, type Shape, startOurs } from '../harness/ours.ts';
import { compare, type Figure, percentile } from '../harness/report.ts';

/** Just below the limit of requests a minute of a key or session. */
const REQUESTS = 285;
const CONNECTIONS = 32;
const READS = 200;
const BODY_BYTES_MAX = 64 * 1024;

/**
 * S8: reads of one account while another sends the longest lists of wrong elements, over the same
 * reads without that.
 */
export async function measureBurst(servers: Servers, shape: Shape, rounds: number): Promise<Figure> {
  const { baseUrl } = await startOurs(servers, shape);
  const reader = await prepareCaller(baseUrl);
  const sender = await prepareCaller(baseUrl);
  const readWhile = async (goesOn: (reads: number) => boolean) => {
    const times: number[] = [];
    while (goesOn(times.length)) times.push(await timeRead(baseUrl, reader));
    return times;
  };
  await readWhile((reads) => reads < READS);
  return compare(
    { id: 'S8', goal: '≤ 100 ms more', what: `read during a burst of wrong lists, ${shape}, p99`, rounds, unit: 'ms', digits: 1 },
    async () => {
      let isRunning = true;
      const burst = sendBurst(baseUrl, sender).finally(() => {
        isRunning = false;
      });
      const [times] = await Promise.all([readWhile(() => isRunning), burst]);
      return percentile(times, 0.99);
    },
    async () => percentile(await readWhile((reads) => reads < READS), 0.99),
  );
}

/** Time of a response with its body, in milliseconds. */
async function timeRead(baseUrl: string, { headers, applicationId }: Caller): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(`${baseUrl}/api/v1/panel/get-application-settings?applicationId=${applicationId}`, { headers });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`A read was answered ${response.status}`);
  return performance.now() - startedAt;
}

async function sendBurst(url: string, { headers, sessionHeaders, applicationId }: Caller): Promise<void> {
  const json = { 'content-type': 'application/json' };
  const levels = `/api/v1/panel/create-application-license-levels?applicationId=${applicationId}`;
  const requests: autocannon.Request[] = [
    { method: 'POST', path: levels, headers: { ...headers, ...json }, body: fill('levels', '1') },
    { method: 'PATCH', path: '/api/v1/panel/api-keys/x', headers: { ...sessionHeaders, ...json }, body: fill('scopes', '"x"') },
  ];
  const result = await autocannon({ url, requests, connections: CONNECTIONS, amount: REQUESTS });
  if (result['4xx'] < REQUESTS) throw new Error(`${result['4xx']} of ${REQUESTS} wrong lists were rejected`);
}

/** A body of almost 64 KiB with as many copies of an element as fit. */
function fill(name: string, element: string): string {
  const count = Math.floor((BODY_BYTES_MAX - 20) / (element.length + 1));
  return `{"${name}":[${Array(count).fill(element)}]}`;
}
