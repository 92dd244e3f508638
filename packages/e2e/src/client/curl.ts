import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Answer, type Api, checkAnswer } from './api.ts';
import { UPLOAD } from './files.ts';

/** Result of curl: code 0 where it reports no error. */
export interface CurlResult {
  readonly exitCode: number | null;
  readonly answer: Answer;
}

/** Uploads with curl, whose standard input is a file. */
export async function curlUpload(
  api: Api,
  target: { readonly applicationId: string; readonly fileName: string },
  args: readonly string[],
  inputPath: string,
): Promise<CurlResult> {
  const headers = { ...api.headers, 'content-type': 'application/octet-stream' };
  const headerArgs = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const url = `${api.baseUrl}${UPLOAD}?${new URLSearchParams(target)}`;
  const input = await open(inputPath);
  const all = ['-sS', '-i', '--max-time', '30', '-X', 'POST', ...headerArgs, ...args, url];
  const child = spawn('curl', all, { stdio: [input.fd, 'pipe', 'pipe'] });
  const ended = Promise.all([text(child.stdout as Readable), text(child.stderr as Readable), once(child, 'close')]);
  const [output, problems, [exitCode]] = await ended.finally(() => input.close());
  // The last response; those of status 1xx stand before it.
  const [head = '', ...rest] = output.replace(/^(HTTP\/1\.1 1.*\r\n(?:.+\r\n)*\r\n)*/, '').split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const fields = lines.map((line) => line.split(/: ?(.*)/, 2) as [string, string]);
  const response = { status: Number(statusLine.split(' ')[1]), headers: new Headers(fields), text: rest.join('\r\n\r\n') };
  return { exitCode, answer: checkAnswer(`curl ${problems}`, response) };
}
