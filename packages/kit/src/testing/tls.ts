import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestAuthority, type TestCertificate, writeTlsFiles } from '@latchkey/testkit/network/certificates';
import { onTestFinished } from 'vitest';
import type { Logger } from '../log/logger.ts';
import { ServiceTls } from '../tls/service-tls.ts';
import { memoryLogger } from './memory-logger.ts';

/** A folder for certificates, removed at the end of the test. */
export async function certificateFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-tls-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** One side of a connection, whose certificate can be replaced. */
export interface TestPeer {
  readonly tls: ServiceTls;
  replace(certificate: TestCertificate, trusted: string): Promise<unknown>;
  /** Replaces the files and has them read. */
  renew(certificate: TestCertificate, trusted: string, logger?: Logger): Promise<void>;
}

/** A peer with a certificate of an authority, which trusts that authority or others. */
export async function createPeer(authority: TestAuthority, trusted = authority.ca): Promise<TestPeer> {
  const dir = await certificateFolder();
  const replace = (certificate: TestCertificate, ca: string) => writeTlsFiles(dir, certificate, ca);
  const tls = new ServiceTls(await replace(await authority.issue(), trusted));
  const renew = async (certificate: TestCertificate, ca: string, logger = memoryLogger().logger) => {
    await replace(certificate, ca);
    tls.reload(logger);
  };
  return { tls, replace, renew };
}
