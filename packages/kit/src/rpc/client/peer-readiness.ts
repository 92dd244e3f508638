import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';
import type { ReadinessCheck } from '../../http/readiness.ts';

/** Longest wait for a service that must be ready, and for one that may be away, in milliseconds. */
const REQUIRED_TIMEOUT_MS = 1_000;
const OPTIONAL_TIMEOUT_MS = 500;

/** Behind a balancer, the second try may reach another process than one that hangs or rejects. */
const TRIES = 2;

function credentialRejected(peer: string, err: unknown): Error | undefined {
  if (!(err instanceof ConnectError) || err.code !== Code.Unauthenticated) return undefined;
  return new Error(`${peer} rejects the credential of this process (SERVICE_CREDENTIALS)`);
}

/**
 * Rejects unless the service at the other end of a transport is ready and accepts the credential of this
 * process. Takes 2 s at most.
 *
 * @param peer name of the service for the error
 */
export async function checkServing(transport: Transport, peer: string): Promise<void> {
  const { check } = createClient(Health, transport);
  for (let tries = 1; ; tries += 1) {
    try {
      const { status } = await check({}, { timeoutMs: REQUIRED_TIMEOUT_MS });
      if (status !== HealthCheckResponse_ServingStatus.SERVING) throw new Error(`${peer} is not ready`);
      return;
    } catch (err) {
      if (tries === TRIES) throw credentialRejected(peer, err) ?? err;
    }
  }
}

/**
 * Readiness of a process that works without the services that it calls, but not while one of them rejects
 * its credential: waiting does not repair that.
 *
 * @param peers transports to the services, by name
 */
export function requireCredentialAccepted(
  checkReady: ReadinessCheck,
  peers: Readonly<Record<string, Transport>>,
): ReadinessCheck {
  const checks = Object.entries(peers).map(([peer, transport]) => credentialCheckOf(peer, transport));
  return async () => {
    await checkReady();
    await Promise.all(checks.map((check) => check()));
  };
}

/** A service that does not answer counts as it did when it last answered. */
function credentialCheckOf(peer: string, transport: Transport): ReadinessCheck {
  const { check } = createClient(Health, transport);
  let rejection: Error | undefined;
  return async () => {
    for (let tries = 0; tries < TRIES; tries += 1) {
      try {
        await check({}, { timeoutMs: OPTIONAL_TIMEOUT_MS });
        rejection = undefined;
        return;
      } catch (err) {
        const found = credentialRejected(peer, err);
        if (!found) break;
        rejection = found;
      }
    }
    if (rejection) throw rejection;
  };
}
