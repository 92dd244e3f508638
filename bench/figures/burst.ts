import autocannon from 'autocannon';
import { type Caller, prepareCaller, publishRelease } from '../harness/account.ts';
import { type Servers, type Shape, startOurs } from '../harness/ours.ts';
import { compare, type Figure, percentile } from '../harness/report.ts';

/** Just below the limit of requests a minute of a key or session. */
const REQUESTS = 285;
const CONNECTIONS = 32;
const READS = 200;
const BODY_BYTES_MAX = 64 * 1024;

const POLLS_PER_SECOND = 1_000;
const POLL_SECONDS = 3;

/** S8: while another account sends the longest lists of wrong elements. */
export const measureBurst = (servers: Servers, shape: Shape, rounds: number): Promise<Figure> =>
  measureReads(servers, shape, { rounds, during: 'a burst of wrong lists', start: async () => sendBurst });

/** S8: while 1,000 clients a second poll the feed of another account. */
export const measurePolls = (servers: Servers, shape: Shape, rounds: number): Promise<Figure> =>
  measureReads(servers, shape, {
    rounds,
    during: `${POLLS_PER_SECOND} feed polls a second`,
    start: async (baseUrl, caller) => {
      const feed = await publishRelease(baseUrl, caller);
      return () => sendPolls(feed);
    },
  });

interface OtherWork {
  readonly rounds: number;
  readonly during: string;
  readonly start: (baseUrl: string, caller: Caller) => Promise<(baseUrl: string, caller: Caller) => Promise<void>>;
}

/** Reads of one account during the work of another, over the same reads without that. */
async function measureReads(servers: Servers, shape: Shape, { rounds, during, start }: OtherWork): Promise<Figure> {
  const { baseUrl } = await startOurs(servers, shape);
  const reader = await prepareCaller(baseUrl);
  const sender = await prepareCaller(baseUrl);
  const readWhile = async (goesOn: (reads: number) => boolean) => {
    const times: number[] = [];
    while (goesOn(times.length)) times.push(await timeRead(baseUrl, reader));
    return times;
  };
  const work = await start(baseUrl, sender);
  await readWhile((reads) => reads < READS);
  return compare(
    { id: 'S8', goal: '≤ 100 ms more', what: `read during ${during}, ${shape}, p99`, rounds, unit: 'ms', digits: 1 },
    async () => {
      let isRunning = true;
      const burst = work(baseUrl, sender).finally(() => {
        isRunning = false;
      });
      const [times] = await Promise.all([readWhile(() => isRunning), burst]);
      return percentile(times, 0.99);
    },
    async () => percentile(await readWhile((reads) => reads < READS), 0.99),
  );
}

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

async function sendPolls(feed: { readonly url: string; readonly headers: Record<string, string> }): Promise<void> {
  const options = { ...feed, connections: CONNECTIONS, overallRate: POLLS_PER_SECOND, duration: POLL_SECONDS };
  const { non2xx, errors } = await autocannon(options);
  if (non2xx + errors > 0) throw new Error(`${non2xx + errors} polls were not answered`);
}

/** A body of almost 64 KiB with as many copies of an element as fit. */
function fill(name: string, element: string): string {
  const count = Math.floor((BODY_BYTES_MAX - 20) / (element.length + 1));
  return `{"${name}":[${Array(count).fill(element)}]}`;
}
