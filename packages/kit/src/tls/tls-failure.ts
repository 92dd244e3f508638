/** Codes of OpenSSL and Node.js for certificates, and for the protocol. */
const CERTIFICATE = /(?:^|_)(?:CERT|CA|CRL|ISSUER|LEAF|PURPOSE)(?:_|$)/;
const PROTOCOL = /^ERR_(?:SSL|TLS)_/;
const WRONG_NAME = 'ERR_TLS_CERT_ALTNAME_INVALID';

/** True if TLS failed, or its certificate was rejected, rather than the connection. */
export function isTlsFailure(err: unknown): boolean {
  const code = (err as NodeJS.ErrnoException | undefined)?.code ?? '';
  return CERTIFICATE.test(code) || PROTOCOL.test(code);
}

/**
 * The reason why TLS with a server fails, and what to do; undefined for other errors.
 *
 * @param setting name of the setting that holds the server's URL
 * @param trust instruction for a private authority
 */
export function explainTlsFailure(err: unknown, setting: string, trust: string): string | undefined {
  if (!isTlsFailure(err)) return undefined;
  const { code = '', message, reason = message } = err as NodeJS.ErrnoException & { readonly reason?: string };
  if (code === WRONG_NAME)
    return `the server's certificate is for another name (${reason}): use a host in ${setting} that it is for`;
  // A hint at an option of Node.js follows.
  if (CERTIFICATE.test(code))
    return `the server's certificate is not trusted (${reason.split(';')[0]}): for a private authority, ${trust}`;
  return `TLS with the server fails (${reason})`;
}
