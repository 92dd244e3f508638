import 'reflect-metadata';
import { type webcrypto, X509Certificate } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';

/** TLS files by the names of their settings. */
export type TlsFilePaths = Readonly<Record<'SERVICE_TLS_CERT_FILE' | 'SERVICE_TLS_KEY_FILE' | 'SERVICE_TLS_CA_FILE', string>>;

/** A certificate and its key, in PEM. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface TestAuthority {
  /** Its own certificate, in PEM. */
  readonly ca: string;
  /**
   * A certificate and its key, for servers and clients. It is for `localhost` and 127.0.0.1, valid
   * for an hour both ways, unless set.
   */
  issue(options?: { hosts?: readonly string[]; endsInMs?: number }): Promise<TestCertificate>;
}

const HOUR_MS = 3_600_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const PURPOSES: string[] = [x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth];

let serial = 0;

export async function createAuthority(name = 'Test authority'): Promise<TestAuthority> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...common(`CN=${name}`),
    keys,
    extensions: await authorityExtensions(keys),
  });
  const issuer = { issuer: certificate.subject, signingKey: keys.privateKey };
  return {
    ca: pemOf(certificate),
    async issue({ hosts = ['localhost', '127.0.0.1'], endsInMs = HOUR_MS } = {}) {
      const own = await generateKeys();
      const extensions = [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.ExtendedKeyUsageExtension(PURPOSES),
        new x509.SubjectAlternativeNameExtension(hosts.map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value }))),
        await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      ];
      const subject = { ...common('CN=Test service', endsInMs), publicKey: own.publicKey, extensions, ...issuer };
      const issued = await x509.X509CertificateGenerator.create(subject);
      return { cert: pemOf(issued), key: await exportKey(own.privateKey) };
    },
  };
}

/** Writes a certificate and the trusted authorities (PEM) to a folder, replacing earlier ones. */
export async function writeTlsFiles(dir: string, { cert, key }: TestCertificate, ca: string): Promise<TlsFilePaths> {
  await mkdir(dir, { recursive: true });
  const put = async (name: string, text: string) => {
    const path = join(dir, name);
    await writeFile(`${path}.new`, text, { mode: 0o600 });
    await rename(`${path}.new`, path);
    return path;
  };
  return {
    SERVICE_TLS_CERT_FILE: await put('tls.crt', cert),
    SERVICE_TLS_KEY_FILE: await put('tls.key', key),
    SERVICE_TLS_CA_FILE: await put('ca.crt', ca),
  };
}

function common(name: string, endsInMs = HOUR_MS) {
  serial += 1;
  const life = { notBefore: new Date(Date.now() - HOUR_MS), notAfter: new Date(Date.now() + endsInMs) };
  return { serialNumber: serial.toString(16).padStart(2, '0'), subject: name, name, signingAlgorithm: ALGORITHM, ...life };
}

async function authorityExtensions(keys: webcrypto.CryptoKeyPair): Promise<x509.Extension[]> {
  return [
    new x509.BasicConstraintsExtension(true, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
  ];
}

/** In Node's own format, so that it compares equal. */
function pemOf(certificate: x509.X509Certificate): string {
  return new X509Certificate(certificate.toString('pem')).toString();
}

function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
