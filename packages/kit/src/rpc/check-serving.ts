import { createClient, type Transport } from '@connectrpc/connect';
import { Health, HealthCheckResponse_ServingStatus } from '@latchkey/proto/health/v1/health_pb';

const TIMEOUT_MS = 2_000;

/** Asks the health service at the other end of a transport, for 2 s at most. Rejects unless it is ready. */
export async function checkServing(transport: Transport): Promise<void> {
  const { status } = await createClient(Health, transport).check({}, { timeoutMs: TIMEOUT_MS });
  if (status !== HealthCheckResponse_ServingStatus.SERVING) throw new Error('a service is not ready');
}
