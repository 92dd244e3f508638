import type { CustomFetch } from 'openid-client';
import pLimit from 'p-limit';
import { isTrustworthy } from './issuer-settings.ts';

/** Largest body of an issuer, decoded, in bytes. Key sets of the largest are some 20 KiB. */
const BODY_BYTES_MAX = 256 * 1024;
/** Calls to one issuer that wait for others to end; more than that are rejected immediately. */
const CALLS_WAITING_MAX = 64;

/** Statuses whose answers have no body (Fetch, 2.2.3). */
const BODILESS = new Set([101, 103, 204, 205, 304]);

/** What an issuer does that keeps it from being asked, whatever was to be asked. */
export class IssuerCallError extends Error {
  override readonly name = 'IssuerCallError';
}

/**
 * How one issuer is called: nowhere but by https or on loopback, with bounded answers, and a bounded number of calls concurrently. Redirects are
 * not followed, as openid-client asks. The signal of a call bounds its time, which includes waiting for other calls and reading the body.
 *
 * @param callsMax calls under way concurrently; further ones wait
 */
export function createIssuerFetch(callsMax: number): CustomFetch {
  const limit = pLimit(callsMax);
  return async (url, options) => {
    if (!isTrustworthy(new URL(url))) throw new IssuerCallError('the URL is neither https nor on loopback');
    if (limit.activeCount + limit.pendingCount >= callsMax + CALLS_WAITING_MAX) {
      throw new IssuerCallError('too many calls are waiting');
    }
    return limit(() => call(url, options));
  };
}

async function call(...[url, options]: Parameters<CustomFetch>): Promise<Response> {
  const { body, headers, method, redirect, signal } = options;
  const request = { body: body as NonNullable<RequestInit['body']>, headers, method, redirect, ...(signal && { signal }) };
  const response = await fetch(url, request);
  const bytes = await readBounded(response);
  return new Response(BODILESS.has(response.status) ? null : bytes, { status: response.status, headers: response.headers });
}

async function readBounded({ body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let byteSize = 0;
  // Leaving the loop cancels the body and with it the call.
  for await (const chunk of body ?? []) {
    byteSize += chunk.byteLength;
    if (byteSize > BODY_BYTES_MAX) throw new IssuerCallError('the body is too large');
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}
