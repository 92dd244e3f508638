import { TOKEN_EXCHANGE_GRANT } from '@latchkey/contract/trusted-issuer';
import type { DomainError } from '@latchkey/kit/errors/errors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import { isEncoded } from './request-body.ts';

export const FORM_TYPE = 'application/x-www-form-urlencoded';
const FORM_BYTES_MAX = 32 * 1024;

/** Codes of RFC 6749, 5.2, and RFC 8693, 2.2.2, that errors have themselves. */
const OWN_CODES = new Set(['unsupported_grant_type', 'invalid_request', 'invalid_scope', 'invalid_target']);

/**
 * Makes a part of the server parse forms, and nothing else. Empty parameters count as absent (RFC
 * 6749, 3.2); one that is given twice is rejected.
 */
export function parseForms(part: FastifyInstance): void {
  part.removeAllContentTypeParsers();
  const options = { parseAs: 'string', bodyLimit: FORM_BYTES_MAX } as const;
  part.addContentTypeParser(FORM_TYPE, options, async ({ raw }: FastifyRequest, text: string) => {
    if (isEncoded(raw)) throw errors.encoding_unsupported();
    const given = [...new URLSearchParams(text)].filter(([, value]) => value !== '');
    const form = new Map(given);
    if (form.size < given.length)
      throw errors.request_invalid().withDetails({ path: 'body', message: 'must not have a parameter twice' });
    return Object.fromEntries(form);
  });
  part.addHook('preValidation', async (request) => {
    // An absent body is not parsed.
    if (request.headers['content-type'] === undefined) throw formTypeUnsupported();
    request.body ??= {};
    // Other grants have other parameters, so that this is checked before the schema.
    const { grant_type = TOKEN_EXCHANGE_GRANT } = request.body as { readonly grant_type?: string };
    if (grant_type !== TOKEN_EXCHANGE_GRANT) throw errors.grant_type_unsupported();
  });
}

export function formTypeUnsupported(): DomainError {
  return errors.media_type_unsupported().withDetails({ path: 'header.content-type', message: `must be ${FORM_TYPE}` });
}

/** 400 for each error of a client but one of a rate limit (RFC 6749, 5.2). */
export function oauthStatus({ kind, httpStatus }: DomainError): number {
  return kind === 'rate_limited' || httpStatus >= 500 ? httpStatus : 400;
}

export function oauthError(err: DomainError): { readonly error: string; readonly error_description: string } {
  const { kind, code, message, details } = err;
  const rules = details.map(({ path, message: rule }) => `${path.replace(/^body\./, '')} ${rule}`);
  const text = rules.length > 0 ? rules.join('; ') : message;
  // The only characters that are allowed.
  const error_description = text.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'");
  if (OWN_CODES.has(code)) return { error: code, error_description };
  if (kind === 'internal') return { error: 'server_error', error_description };
  return { error: oauthStatus(err) === 400 ? 'invalid_request' : 'temporarily_unavailable', error_description };
}
