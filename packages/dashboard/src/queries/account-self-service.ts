import { ConnectionError, type ErrorDetail, LatchkeyError } from '@latchkey/client';
import { latchkey } from '../api.ts';
import { basePath } from '../settings.ts';

/** A session of the account, without its secrets. */
export interface OpenSession {
  readonly id: string;
  readonly current: boolean;
  readonly createdAt: string;
  /** Exact to a minute. */
  readonly lastUsedAt: string;
  readonly lastUsedIp: string | null;
  /** Any client may send any text. */
  readonly userAgent: string | null;
}

/** Proves that the owner uses the session: the password, and a code where two-factor is on. */
export interface OwnerProof {
  readonly password?: string;
  readonly code?: string;
}

const TIMEOUT_MS = 30_000;

/** Routes that the client does not have yet. */
export const selfService = {
  listSessions: (signal?: AbortSignal) => call<OpenSession[]>('GET', '/api/v1/auth/sessions', undefined, signal),
  endSession: (id: string) => call('DELETE', `/api/v1/auth/sessions/${encodeURIComponent(id)}`),
  changePassword: (change: OwnerProof & { readonly newPassword: string }) => call('POST', '/api/v1/auth/password/change', change),
  changeEmail: (change: OwnerProof & { readonly email: string }) => call('POST', '/api/v1/auth/email/change', change),
  deleteAccount: (proof: OwnerProof) => call('DELETE', '/api/v1/auth/account', proof),
  removeAvatar: () => call('DELETE', '/api/v1/panel/avatar'),
  createDownloadUrl: (applicationId: string, fileId: string) =>
    call<{ readonly url: string; readonly expiresAt: string }>(
      'POST',
      `/api/v1/panel/create-download-url?${new URLSearchParams({ applicationId })}`,
      { fileId },
    ),
};

type Method = 'GET' | 'POST' | 'DELETE';

async function call<T = undefined>(method: Method, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  // Another tab may have opened another session, with another token.
  const token = method === 'GET' ? undefined : (await latchkey.account.session()).csrfToken;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(`${basePath.replace(/\/$/, '')}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { 'x-csrf-token': token }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      redirect: 'manual',
    });
    return readData<T>(response, (await response.json()) as Envelope);
  } catch (err) {
    if (signal?.aborted || err instanceof LatchkeyError) throw err;
    throw new ConnectionError('Cannot reach Latchkey.', { code: timeout.aborted ? 'timeout' : 'connection_failed', cause: err });
  }
}

interface Envelope {
  readonly success: boolean;
  readonly message: string;
  readonly data?: unknown;
  readonly code?: string;
  readonly details?: readonly ErrorDetail[];
}

function readData<T>({ headers, status }: Response, { success, message, data, code = '', details }: Envelope): T {
  if (success) return data as T;
  const retryAfter = headers.get('retry-after');
  throw new LatchkeyError(message, {
    code,
    status,
    details,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: retryAfter === null ? undefined : Number(retryAfter),
  });
}
