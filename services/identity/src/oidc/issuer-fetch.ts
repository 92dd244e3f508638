import type { CustomFetch } from 'openid-client';
import { isTrustworthy } from './issuer-settings.ts';

/** Largest body of an issuer, decoded, in bytes. Key sets of the largest are some 20 KiB. */
const BODY_BYTES_MAX = 256 * 1024;
/** Calls to all issuers under way in one process; more than that are not begun. */
const CALLS_AT_ONCE_MAX = 64;

/** Statuses whose answers have no body (Fetch, 2.2.3). */
const BODILESS = new Set([101, 103, 204, 205, 304]);

/** What an issuer does that keeps it from being asked, whatever was to be asked. */
export class IssuerCallError extends Error {
  override readonly name = 'IssuerCallError';
}

/**
 * How issuers are called: nowhere but by https or on loopback, with bounded answers, and no more calls at once than a process can bear. Redirects are
 * not followed, as openid-client asks. How long a call may take is told by its signal, which also ends the reading of a body.
 */
export function createIssuerFetch(): CustomFetch {
  let callsUnderWay = 0;
  return async (url, { body, headers, method, redirect, signal }) => {
    if (!isTrustworthy(new URL(url))) throw new IssuerCallError('the URL is neither https nor on loopback');
    if (callsUnderWay >= CALLS_AT_ONCE_MAX) throw new IssuerCallError('too many calls are under way');
    callsUnderWay += 1;
    try {
      const request = { body: body as NonNullable<RequestInit['body']>, headers, method, redirect, ...(signal && { signal }) };
      const response = await fetch(url, request);
      const bytes = await readBounded(response);
      return new Response(BODILESS.has(response.status) ? null : bytes, { status: response.status, headers: response.headers });
    } finally {
      callsUnderWay -= 1;
    }
  };
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
