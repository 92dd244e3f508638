import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type TestAuthority, type TestCertificate, writeTlsFiles } from '@latchkey/testkit/network/certificates';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { runRedis } from '@latchkey/testkit/redis/run-redis';
import { onTestFinished } from 'vitest';
import { ServiceTls } from '../tls/service-tls.ts';
import { memoryLogger } from './memory-logger.ts';

/** A folder for certificates, removed at the end of the test. */
export async function certificateFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-tls-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Trusts an authority as NODE_EXTRA_CA_CERTS does, until the test ends. */
export function trustAuthority({ ca }: Pick<TestAuthority, 'ca'>): void {
  const usual = getCACertificates('default');
  setDefaultCACertificates([...usual, ca]);
  onTestFinished(() => setDefaultCACertificates(usual));
}

/**
 * Starts a Redis that has TLS only, with the password `watchword`, until the test ends. Returns its
 * host and port, which may not accept connections yet.
 *
 * @param more further lines of the configuration, and arguments
 */
export async function startTlsRedis(authority: TestAuthority, certificate = authority.issue(), more: readonly string[] = []) {
  const [lines = '', ...args] = more;
  const paths = await writeTlsFiles(await certificateFolder(), await certificate, authority.ca);
  const port = await findFreePort();
  const config = `port 0
tls-port ${port}
bind 127.0.0.1
requirepass watchword
tls-cert-file ${paths.SERVICE_TLS_CERT_FILE}
tls-key-file ${paths.SERVICE_TLS_KEY_FILE}
tls-ca-cert-file ${paths.SERVICE_TLS_CA_FILE}
tls-auth-clients no
tls-replication yes
${lines}
`;
  await runRedis(config, ...args);
  return `127.0.0.1:${port}`;
}

/** One side of a connection, whose certificate can be replaced. */
export type TestPeer = Awaited<ReturnType<typeof createPeer>>;

/** A peer with a certificate of an authority, which trusts that authority or others. */
export async function createPeer(authority: TestAuthority, trusted = authority.ca) {
  const dir = await certificateFolder();
  const replace = (certificate: TestCertificate, ca: string) => writeTlsFiles(dir, certificate, ca);
  const tls = new ServiceTls(await replace(await authority.issue(), trusted));
  /** Replaces the files and has them read. */
  const renew = async (certificate: TestCertificate, ca: string, logger = memoryLogger().logger) => {
    await replace(certificate, ca);
    tls.reload(logger);
  };
  return { tls, replace, renew };
}
