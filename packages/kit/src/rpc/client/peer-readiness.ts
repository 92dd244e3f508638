import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';
import type { ReadinessCheck } from '../../http/probes.ts';

/** Longest wait for a service that must be ready, and for one that is optional, in milliseconds. */
const REQUIRED_TIMEOUT_MS = 1_000;
const OPTIONAL_TIMEOUT_MS = 400;

class CredentialRejected extends Error {}

/** Rejects, after 2 s at most, unless a service is ready and accepts our credential. */
export async function checkServing(transport: Transport, peer: string, timeoutMs = REQUIRED_TIMEOUT_MS): Promise<void> {
  const { check } = createClient(Health, transport);
  const tryOnce = async () => {
    const { status } = await check({}, { timeoutMs }).catch((err: unknown) => {
      const isRejected = err instanceof ConnectError && err.code === Code.Unauthenticated;
      throw isRejected ? new CredentialRejected(`${peer} rejects the credential of this process (SERVICE_CREDENTIALS)`) : err;
    });
    if (status !== HealthCheckResponse_ServingStatus.SERVING) throw new Error(`${peer} is not ready`);
  };
  // Behind a balancer, the second try may reach another process than one that hangs or rejects.
  await tryOnce().catch(tryOnce);
}

/**
 * Readiness of a process that works without the services that it calls, but not while one of them
 * rejects its credential: waiting does not repair that.
 *
 * @param peers transports to the services, by name
 */
export function requireCredentialAccepted(
  checkReady: ReadinessCheck,
  peers: Readonly<Record<string, Transport>>,
): ReadinessCheck {
  const checkPeer = ([peer, transport]: [string, Transport]) =>
    checkServing(transport, peer, OPTIONAL_TIMEOUT_MS).catch((err: unknown) => {
      if (err instanceof CredentialRejected) throw err;
    });
  return async () => {
    await checkReady();
    await Promise.all(Object.entries(peers).map(checkPeer));
  };
}
