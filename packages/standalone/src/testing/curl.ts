import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Answer, type Api, checkAnswer } from './api.ts';
import { MIB, UPLOAD } from './files.ts';

/** What curl said at last. */
export interface CurlResult {
  /** Zero where curl is content. */
  readonly exitCode: number | null;
  readonly answer: Answer;
}

/** Uploads with curl. Where it reads its standard input, so many zero bytes are there. */
export async function curlUpload(
  api: Api,
  target: { readonly applicationId: string; readonly fileName: string },
  args: readonly string[],
  stdinBytes = 0,
): Promise<CurlResult> {
  const headers = { ...api.headers, 'content-type': 'application/octet-stream' };
  const headerArgs = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const url = `${api.baseUrl}${UPLOAD}?${new URLSearchParams(target)}`;
  const child = spawn('curl', ['-sS', '-i', '--max-time', '30', '-X', 'POST', ...headerArgs, ...args, url]);
  const output: Buffer[] = [];
  const problems: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => problems.push(chunk));
  // curl need not read all of it.
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close');
  const chunk = new Uint8Array(MIB);
  for (let left = stdinBytes; left > 0 && child.stdin.writable; left -= MIB) {
    if (!child.stdin.write(chunk.subarray(0, left)))
      await Promise.race([once(child.stdin, 'drain').catch(() => undefined), closed]);
  }
  child.stdin.end();
  const [exitCode] = await closed;
  return { exitCode, answer: parse(Buffer.concat(output).toString(), Buffer.concat(problems).toString()) };
}

/** The last answer in what `curl -i` printed; those of status 1xx stand before it. */
function parse(output: string, problems: string): Answer {
  const last = output.replace(/^(HTTP\/1\.1 1.*\r\n(?:.+\r\n)*\r\n)*/, '');
  const [head = '', ...rest] = last.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return checkAnswer(`curl ${problems}`, { status: Number(statusLine.split(' ')[1]), headers, text: rest.join('\r\n\r\n') });
}
