import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';
import type { ReadinessCheck } from '../../http/cached-readiness.ts';

/** Longest wait for a service that must be ready, and for one that may be away, in milliseconds. */
const REQUIRED_TIMEOUT_MS = 1_000;
const OPTIONAL_TIMEOUT_MS = 400;

/** Behind a balancer, the second try may reach another process than one that hangs or rejects. */
const TRIES = 2;

class CredentialRejected extends Error {}

/** Why a service is not ready for this process; undefined if it is. */
async function findProblem(transport: Transport, peer: string, timeoutMs: number): Promise<unknown> {
  const { check } = createClient(Health, transport);
  let problem: unknown;
  for (let tries = 0; tries < TRIES; tries += 1) {
    try {
      const { status } = await check({}, { timeoutMs });
      if (status === HealthCheckResponse_ServingStatus.SERVING) return undefined;
      problem = new Error(`${peer} is not ready`);
    } catch (err) {
      const isRejected = err instanceof ConnectError && err.code === Code.Unauthenticated;
      const sentence = `${peer} refuses the credential of this process (SERVICE_CREDENTIALS)`;
      problem = isRejected ? new CredentialRejected(sentence) : err;
    }
  }
  return problem;
}

/** Rejects, after 2 s at most, unless a service is ready and accepts the credential of this process. */
export async function checkServing(transport: Transport, peer: string): Promise<void> {
  const problem = await findProblem(transport, peer, REQUIRED_TIMEOUT_MS);
  if (problem) throw problem;
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
  const rejections = new Map<string, CredentialRejected>();
  return async () => {
    await checkReady();
    const ask = async ([peer, transport]: [string, Transport]) => {
      const problem = await findProblem(transport, peer, OPTIONAL_TIMEOUT_MS);
      if (problem instanceof CredentialRejected) rejections.set(peer, problem);
      // A service that does not answer counts as it did when it last answered.
      else if (!(problem instanceof ConnectError)) rejections.delete(peer);
    };
    await Promise.all(Object.entries(peers).map(ask));
    for (const rejection of rejections.values()) throw rejection;
  };
}
