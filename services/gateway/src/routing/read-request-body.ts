import type { Readable } from 'node:stream';
import type { Scope } from '@latchkey/contract/scopes';
import type { z } from 'zod';
import type { RequestBody } from '../files-data-path.ts';
import type { digestHeaders } from '../http/content-digest.ts';
import { announcedByteSize } from '../http/request-body.ts';
import { currentRequest, formatRequestActor } from '../request-context.ts';
import type { RouteRequest } from './route.ts';

export function readRequestBody(
  { principal, clientIp, reply, raw, headers }: RouteRequest<Scope | 'session', undefined, unknown, unknown, unknown>,
  body: Readable = raw,
  byteSize = body === raw ? announcedByteSize(raw) : 0,
): RequestBody {
  const { 'content-digest': digest } = headers as z.output<typeof digestHeaders>;
  return {
    ...{ accountId: principal.accountId, body, byteSize, requestId: reply.request.id },
    actor: formatRequestActor({ principal, clientIp }),
    checksum: digest?.byteLength ? digest : undefined,
    idempotency: currentRequest()?.idempotency,
  };
}
