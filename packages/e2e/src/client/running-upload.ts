import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Answer, type Api, checkAnswer } from './api.ts';
import { UPLOAD } from './files.ts';

/** An upload that was let in and goes on for as long as a test wants. */
export interface RunningUpload {
  /** Sends bytes as fast as they are taken. */
  send(bytes: Uint8Array): Promise<void>;
  /** Ends the body and gives the answer. */
  finish(): Promise<Answer>;
}

/** Starts an upload; resolves at 100 Continue, when the account's lease is taken. */
export async function startUpload(api: Api, target: { applicationId: string; fileName: string }): Promise<RunningUpload> {
  const headers = { 'content-type': 'application/octet-stream', expect: '100-continue', ...api.headers };
  const req = request(`${api.baseUrl}${UPLOAD}?${new URLSearchParams(target)}`, { method: 'POST', agent: false, headers });
  const answer = readAnswer(req);
  req.flushHeaders();
  const rejected = answer.then((early) => Promise.reject(new Error(`The upload was not let in: ${early.text}`)));
  await Promise.race([once(req, 'continue'), rejected]);
  rejected.catch(() => undefined);
  return {
    async send(bytes) {
      if (!req.write(bytes)) await Promise.race([once(req, 'drain'), answer]);
    },
    finish() {
      req.end();
      return answer;
    },
  };
}

async function readAnswer(req: ClientRequest): Promise<Answer> {
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  const headers = new Headers(Object.entries(res.headers) as Array<[string, string]>);
  return checkAnswer(req.path, { status: res.statusCode ?? 0, headers, text: await text(res) });
}
