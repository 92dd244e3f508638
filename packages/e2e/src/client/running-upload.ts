import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { finished } from 'node:stream/promises';
import { type Answer, type Api, checkAnswer } from './api.ts';
import { UPLOAD } from './files.ts';

/** An upload that was let in and goes on for as long as a test wants. */
export interface RunningUpload {
  readonly request: ClientRequest;
  /** Resolves with the response; rejects when the connection ends without one. */
  readonly answer: Promise<Answer>;
  /** Sends bytes as fast as they are taken. */
  send(bytes: Uint8Array): Promise<void>;
  /** Ends the body and gives the answer. */
  finish(): Promise<Answer>;
}

export interface UploadTarget {
  readonly applicationId: string;
  readonly fileName: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Starts an upload; resolves at 100 Continue, when the account's lease is taken. */
export async function startUpload(api: Api, target: UploadTarget): Promise<RunningUpload> {
  const upload = openUpload(api, target);
  await new Promise<void>((resolve, reject) => {
    upload.request.once('continue', resolve);
    upload.answer.then(({ text }) => reject(new Error(`The upload was not let in: ${text}`)), reject);
  });
  return upload;
}

/** Sends the head of an upload, with `Expect: 100-continue`, and no byte of its body. */
export function openUpload(api: Api, { applicationId, fileName, headers }: UploadTarget): RunningUpload {
  const url = `${api.baseUrl}${UPLOAD}?${new URLSearchParams({ applicationId, fileName })}`;
  const req = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/octet-stream', expect: '100-continue', ...api.headers, ...headers },
  });
  const answer = readAnswer(req);
  // Not every test awaits it.
  answer.catch(() => undefined);
  req.flushHeaders();
  return {
    request: req,
    answer,
    async send(bytes) {
      if (req.write(bytes)) return;
      await Promise.race([new Promise((resolve) => req.once('drain', resolve)), answer]);
    },
    finish() {
      req.end();
      return answer;
    },
  };
}

function readAnswer(req: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    req.on('error', reject);
    req.on('response', (res: IncomingMessage) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      finished(res).then(() => {
        const headers = new Headers(Object.entries(res.headers) as Array<[string, string]>);
        resolve(checkAnswer(req.path, { status: res.statusCode ?? 0, headers, text: Buffer.concat(chunks).toString() }));
      }, reject);
    });
  });
}
