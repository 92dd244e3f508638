import { createClient, type Transport } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';
import { credentialRefused, isCredentialRefused } from './check-credential.ts';

/** Longest wait for an answer, in milliseconds, and how often is asked. What is not answered costs its connection, so that the next goes another way. */
const TIMEOUT_MS = 1_000;
const TRIES_MAX = 2;

/**
 * Asks the health service at the other end of a transport, for 2 s at most. Rejects unless it is ready and takes the credential of this process. Of several
 * processes behind a balancer one that hangs does not make the service unready.
 *
 * @param peer what the service is called where it is told why
 */
export async function checkServing(transport: Transport, peer: string): Promise<void> {
  const { check } = createClient(Health, transport);
  for (let tries = 1; ; tries += 1) {
    try {
      const { status } = await check({}, { timeoutMs: TIMEOUT_MS });
      if (status !== HealthCheckResponse_ServingStatus.SERVING) throw new Error(`${peer} is not ready`);
      return;
    } catch (err) {
      if (tries === TRIES_MAX) throw isCredentialRefused(err) ? credentialRefused(peer) : err;
    }
  }
}
