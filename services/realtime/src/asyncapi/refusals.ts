import { errors } from '../errors.ts';
import { REALTIME_PATH } from '../protocol.ts';

/** How the service answers a request that it does not upgrade, and what the client does then. */
export interface Refusal {
  readonly status: number;
  /** `code` of the error envelope. */
  readonly code: string;
  readonly meaning: string;
  readonly clientShould: string;
}

/** The refusals that a client of this endpoint meets (decisions 10). */
export const REFUSALS: readonly Refusal[] = [
  {
    status: 400,
    code: errors.handshake_invalid().code,
    meaning: 'The request is no WebSocket handshake (RFC 6455), or offers only sub-protocols that are not spoken here.',
    clientShould: 'Stop, and mend the request.',
  },
  {
    status: 401,
    code: 'api_key_invalid',
    meaning:
      'There is no socket key, more than one, or one that is malformed, unknown or rotated, or its application is deleted.',
    clientShould: 'Stop, and get the present key.',
  },
  {
    status: 404,
    code: errors.route_not_found().code,
    meaning: 'There is no such path here.',
    clientShould: `Stop, and mend the URL: it ends in \`${REALTIME_PATH}\`.`,
  },
  {
    status: 405,
    code: errors.method_not_allowed().code,
    meaning: 'The method is not `GET`.',
    clientShould: 'Stop, and mend the request.',
  },
  {
    status: 426,
    code: 'bad_request',
    meaning: 'The request asks for no upgrade.',
    clientShould: 'Stop, and speak WebSocket: something in between may not pass the upgrade on.',
  },
  {
    status: 429,
    code: 'rate_limit_reached',
    meaning: 'The address or the application has too many connections, or the address had too many refused.',
    clientShould: 'Wait for `Retry-After` seconds and a random delay, and try again.',
  },
  {
    status: 503,
    code: 'INTERNAL_ERROR',
    meaning: 'The node is full or stopping, or can’t look the key up now.',
    clientShould: 'Wait for `Retry-After` seconds and a random delay, and try again.',
  },
];
