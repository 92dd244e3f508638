import type { CustomFetch } from 'openid-client';
import pLimit from 'p-limit';
import { IssuerError } from './issuer-error.ts';
import { isTrustworthy } from './issuer-settings.ts';

/** The largest key sets have some 20 KiB. */
const BODY_BYTES_MAX = 256 * 1024;
/** Calls to one issuer that wait for others to end; more are rejected. */
const WAITING_MAX = 64;
/** Statuses of responses without a body (Fetch, 2.2.3). */
const BODILESS = new Set([101, 103, 204, 205, 304]);

/**
 * The `fetch` for one issuer: https or loopback only, no redirects (as openid-client asks), and
 * bounded response size and concurrency. The signal of a call also covers its wait and its body.
 */
export function createIssuerFetch(concurrency: number): CustomFetch {
  const limit = pLimit(concurrency);
  return async (url, options) => {
    if (!isTrustworthy(new URL(url))) throw new IssuerError('the URL is neither https nor on loopback');
    if (limit.activeCount + limit.pendingCount >= concurrency + WAITING_MAX) {
      throw new IssuerError('too many calls are waiting');
    }
    return limit(async () => {
      const response = await fetch(url, options as RequestInit);
      const body = await readBody(response);
      const { status, headers } = response;
      return new Response(BODILESS.has(status) ? null : body, { status, headers });
    });
  };
}

async function readBody({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let byteSize = 0;
  // Leaving the loop cancels the body and the call.
  for await (const chunk of body ?? []) {
    byteSize += chunk.byteLength;
    if (byteSize > BODY_BYTES_MAX) throw new IssuerError('the body is too large');
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
