import { type Caller, prepareCaller } from './account.ts';
import { type Servers, type Shape, type Side, startBaseline, startOurs } from './ours.ts';
import { cpuSecondsOf } from './process-tree.ts';
import { type Figure, median, range } from './report.ts';

const MIB = 1024 * 1024;
const FILE_MIB = 150;
/** Files that one side takes in a round. */
const FILES_A_ROUND = 3;
const UPLOADS_AT_ONCE = 8;
const SAMPLE_INTERVAL_MS = 20;

const CHUNK = Buffer.alloc(MIB, 'latchkey');
let serial = 0;

/** F3: CPU of our processes per GiB uploaded, over that of a bare handler that hashes the body and writes it to a file, in turns. */
export async function measureUploadCpu(servers: Servers, shape: Shape, rounds: number): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const baseline = await startBaseline(servers);
  try {
    const caller = await prepareCaller(ours.baseUrl);
    const send = {
      ours: () => uploadAndDelete(ours.baseUrl, caller),
      baseline: () => post(`${baseline.baseUrl}/upload?name=upload`),
    };
    await send.ours();
    await send.baseline();
    const found = { ours: [] as number[], baseline: [] as number[], ratio: [] as number[] };
    for (let round = 0; round < rounds; round += 1) {
      const a = await secondsPerGib(ours, send.ours);
      const b = await secondsPerGib(baseline, send.baseline);
      found.ours.push(a);
      found.baseline.push(b);
      found.ratio.push(a / b);
    }
    return {
      id: 'F3',
      what: `upload of ${FILE_MIB} MiB, ${shape}, CPU per GiB`,
      value: `${median(found.ours).toFixed(2)} s`,
      baseline: `${median(found.baseline).toFixed(2)} s`,
      result: `${median(found.ratio).toFixed(2)} (${range(found.ratio, 2)})`,
      goal: shape === 'standalone' ? '≤ 1.3' : '≤ 2.2',
    };
  } finally {
    await Promise.all([ours.child.stop(), baseline.child.stop()]);
  }
}

/** F4: how much the resident set of each process grows over several uploads at once, of an account each. */
export async function measureUploadMemory(servers: Servers, shape: Shape): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  try {
    const callers = await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, () => prepareCaller(ours.baseUrl)));
    const before = new Map(ours.measured().map(({ pid, residentBytes }) => [pid, residentBytes]));
    let growth = 0;
    const sample = () => {
      for (const { pid, residentBytes } of ours.measured()) growth = Math.max(growth, residentBytes - (before.get(pid) ?? 0));
    };
    const sampling = setInterval(sample, SAMPLE_INTERVAL_MS);
    await Promise.all(callers.map((caller) => uploadAndDelete(ours.baseUrl, caller))).finally(() => clearInterval(sampling));
    sample();
    return {
      id: 'F4',
      what: `${UPLOADS_AT_ONCE} uploads of ${FILE_MIB} MiB at once, ${shape}, growth of a process at most`,
      value: `${(growth / MIB).toFixed(0)} MiB`,
      baseline: '',
      result: '',
      goal: '≤ 96 MiB',
    };
  } finally {
    await ours.child.stop();
  }
}

async function secondsPerGib(side: Side, send: () => Promise<unknown>): Promise<number> {
  const before = cpuSecondsOf(side.measured());
  for (let i = 0; i < FILES_A_ROUND; i += 1) await send();
  return (cpuSecondsOf(side.measured()) - before) / ((FILES_A_ROUND * FILE_MIB) / 1024);
}

/** Uploads a file, then deletes it, so that the disk does not fill. */
async function uploadAndDelete(baseUrl: string, { headers, applicationId }: Caller): Promise<void> {
  serial += 1;
  const panel = `${baseUrl}/api/v1/panel`;
  const { data } = await post(`${panel}/upload-file?applicationId=${applicationId}&fileName=bench-${serial}`, headers);
  const response = await fetch(`${panel}/file-action?applicationId=${applicationId}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ action: 'delete_file', fileId: data.id }),
  });
  if (!response.ok) throw new Error(`file-action: ${response.status} ${await response.text()}`);
}

async function post(url: string, headers: Record<string, string> = {}): Promise<{ data: { id: string } }> {
  const body = new ReadableStream({ type: 'bytes', start: () => undefined, pull: feed(FILE_MIB) });
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', ...headers },
    body,
    duplex: 'half',
  });
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { data: { id: string } };
}

/** Gives a stream so many MiB. */
function feed(chunks: number) {
  let left = chunks;
  return (controller: ReadableByteStreamController) => {
    if (left === 0) controller.close();
    else controller.enqueue(new Uint8Array(CHUNK));
    left -= 1;
  };
}
