import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestAuthority, type TestCertificate, writeTlsFiles } from '@latchkey/testkit/certificates';
import { onTestFinished } from 'vitest';
import type { Logger } from '../logger.ts';
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
  /** Replaces the files, and has them looked at. */
  renew(certificate: TestCertificate, trusted: string, logger?: Logger): Promise<void>;
}

/** A peer with a certificate that an authority has signed, and that trusts those whom the same or another one has. */
export async function createPeer(authority: TestAuthority, trusted = authority.ca): Promise<TestPeer> {
  const dir = await certificateFolder();
  const tls = new ServiceTls(await writeTlsFiles(dir, await authority.issue(), trusted));
  return {
    tls,
    async renew(certificate, ca, logger = memoryLogger().logger) {
      await writeTlsFiles(dir, certificate, ca);
      tls.look(logger);
    },
  };
}
