import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ConfigError } from '../config.ts';

/** Where the certificate of a process, its key, and the certificates of those who may sign its peers' are: files in PEM. */
export interface TlsFiles {
  readonly SERVICE_TLS_CERT_FILE: string;
  readonly SERVICE_TLS_KEY_FILE: string;
  readonly SERVICE_TLS_CA_FILE: string;
}

/** What is in them, checked. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  /** Until when the certificate is valid. */
  readonly validTo: Date;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Purposes that a certificate with a list of them must have, as each service both answers and calls (RFC 5280, 4.2.1.12). */
const PURPOSES = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'];

/**
 * Reads the files, and refuses what peers would refuse.
 *
 * @throws ConfigError naming every problem
 */
export function readTlsMaterial(files: TlsFiles, now = new Date()): TlsMaterial {
  const problems: string[] = [];
  const readText = (name: keyof TlsFiles): string | undefined => {
    try {
      return readFileSync(files[name], 'utf8');
    } catch (err) {
      problems.push(`${name} can't be read (${(err as NodeJS.ErrnoException).code})`);
      return undefined;
    }
  };
  const [cert, key, ca] = [readText('SERVICE_TLS_CERT_FILE'), readText('SERVICE_TLS_KEY_FILE'), readText('SERVICE_TLS_CA_FILE')];
  const chain = cert === undefined ? [] : readCertificates('SERVICE_TLS_CERT_FILE', cert, problems);
  const authorities = ca === undefined ? [] : readCertificates('SERVICE_TLS_CA_FILE', ca, problems);
  const privateKey = key === undefined ? undefined : readKey(key, problems);
  const [leaf] = chain;
  if (leaf) {
    problems.push(...flawsOf(leaf, now));
    if (privateKey && !leaf.checkPrivateKey(privateKey)) {
      problems.push('SERVICE_TLS_KEY_FILE is not the key of the certificate in SERVICE_TLS_CERT_FILE');
    }
    if (authorities.length > 0 && !isSignedBy(chain, authorities)) {
      problems.push('SERVICE_TLS_CERT_FILE holds a certificate that nobody in SERVICE_TLS_CA_FILE has signed');
    }
  }
  if (!leaf || cert === undefined || key === undefined || ca === undefined || problems.length > 0) {
    throw new ConfigError(problems.join('\n'));
  }
  // Written anew: two that are put together without a line between them would be none to OpenSSL.
  return { cert: chain.join(''), key, ca: authorities.join(''), validTo: leaf.validToDate };
}

function readCertificates(name: keyof TlsFiles, text: string, problems: string[]): X509Certificate[] {
  try {
    const certificates = (text.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    if (certificates.length === 0) problems.push(`${name} holds no certificate in PEM`);
    return certificates;
  } catch {
    problems.push(`${name} holds a certificate that can't be read`);
    return [];
  }
}

function readKey(text: string, problems: string[]): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    problems.push('SERVICE_TLS_KEY_FILE holds no private key in PEM that is readable without a password');
    return undefined;
  }
}

function flawsOf(leaf: X509Certificate, now: Date): string[] {
  const flaws: string[] = [];
  const name = 'SERVICE_TLS_CERT_FILE holds a certificate that';
  if (leaf.validToDate <= now) flaws.push(`${name} has expired (${leaf.validToDate.toISOString()})`);
  if (leaf.validFromDate > now) flaws.push(`${name} is not valid yet (${leaf.validFromDate.toISOString()})`);
  // Node calls the extended key usage by this name, and has none where any purpose is allowed.
  const purposes = leaf.keyUsage as string[] | undefined;
  if (purposes && !PURPOSES.every((purpose) => purposes.includes(purpose))) {
    flaws.push(`${name} is not for servers and clients both, as its extended key usage says`);
  }
  return flaws;
}

/** Whether the first certificate leads to one of the authorities, by way of those that follow it. */
function isSignedBy(chain: readonly X509Certificate[], authorities: readonly X509Certificate[]): boolean {
  const signs = (issuer: X509Certificate) => (one: X509Certificate) => one.checkIssued(issuer) && one.verify(issuer.publicKey);
  for (const [index, certificate] of chain.entries()) {
    if (authorities.some((authority) => signs(authority)(certificate))) return true;
    const next = chain[index + 1];
    if (!next || !signs(next)(certificate)) return false;
  }
  return false;
}
