import { type Caller, prepareCaller } from '../harness/account.ts';
import { type Servers, type Shape, startBaseline, startOurs } from '../harness/ours.ts';
import { compare, type Figure } from '../harness/report.ts';
import { request } from '../harness/request.ts';

const MIB = 1024 * 1024;
const FILE_MIB = 150;
const FILES_A_ROUND = 3;
const CONCURRENT_UPLOADS = 8;
const SAMPLE_INTERVAL_MS = 20;

const CHUNK = Buffer.alloc(MIB, 'latchkey');
let serial = 0;

/**
 * F3: CPU of our processes per GiB uploaded, over that of a bare handler that hashes the body and
 * writes it to a file.
 */
export async function measureUploadCpu(servers: Servers, shape: Shape, rounds: number): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const baseline = await startBaseline(servers);
  const caller = await prepareCaller(ours.baseUrl);
  const send = () => uploadAndDelete(ours.baseUrl, caller);
  const sendBare = () => post(`${baseline.baseUrl}/upload?name=upload`);
  await send();
  await sendBare();
  const perGib = (seconds: number) => seconds / ((FILES_A_ROUND * FILE_MIB) / 1024);
  const goal = shape === 'standalone' ? '≤ 0.9' : '≤ 1.2';
  return compare(
    { id: 'F3', goal, what: `upload of ${FILE_MIB} MiB, ${shape}, CPU per GiB`, rounds, unit: 's', digits: 2 },
    async () => perGib(await ours.cpuSeconds(() => repeat(send))),
    async () => perGib(await baseline.cpuSeconds(() => repeat(sendBare))),
  );
}

/**
 * F4: growth of each process's resident set over several concurrent uploads, of an account each.
 */
export async function measureUploadMemory(servers: Servers, shape: Shape): Promise<Figure> {
  const ours = await startOurs(servers, shape);
  const callers = await Promise.all(Array.from({ length: CONCURRENT_UPLOADS }, () => prepareCaller(ours.baseUrl)));
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
    what: `${CONCURRENT_UPLOADS} concurrent uploads of ${FILE_MIB} MiB, ${shape}, largest growth of a process`,
    value: `${(growth / MIB).toFixed(0)} MiB`,
    goal: '≤ 96 MiB',
  };
}

async function repeat(send: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < FILES_A_ROUND; i += 1) await send();
}

/** Deletes the file again, so that the disk does not fill. */
async function uploadAndDelete(baseUrl: string, { headers, applicationId }: Caller): Promise<void> {
  serial += 1;
  const panel = `${baseUrl}/api/v1/panel`;
  const { body } = await post(`${panel}/upload-file?applicationId=${applicationId}&fileName=bench-${serial}`, headers);
  const json = { action: 'delete_file', fileId: body.data.id };
  await request(`${panel}/file-action?applicationId=${applicationId}`, { headers, json });
}

function post(url: string, headers: Record<string, string> = {}) {
  let chunksLeft = FILE_MIB;
  const pull = (controller: ReadableByteStreamController) => {
    if (chunksLeft === 0) controller.close();
    else controller.enqueue(new Uint8Array(CHUNK));
    chunksLeft -= 1;
  };
  return request(url, {
    headers: { 'content-type': 'application/octet-stream', ...headers },
    body: new ReadableStream({ type: 'bytes', start: () => undefined, pull }),
    duplex: 'half',
  });
}
