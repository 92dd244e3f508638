import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import type { ReadinessCheck } from './health.ts';

/** Longest wait for a word of a peer, in milliseconds: who asks whether a process is ready waits a second. */
const TIMEOUT_MS = 500;

/** Tries of a peer that refuses: of several processes behind a balancer another may take the credential. */
const TRIES_MAX = 2;

/** Whether a call failed as the other end does not take this process's credential. */
export function isCredentialRefused(err: unknown): boolean {
  return err instanceof ConnectError && err.code === Code.Unauthenticated;
}

/** What a process that is not ready says of it. */
export function credentialRefused(peer: string): Error {
  return new Error(`${peer} refuses the credential of this process (SERVICE_CREDENTIALS)`);
}

/**
 * Readiness of a process that does most of its work without the services that it calls: it may be ready while they are away, and is not while one of them
 * refuses its credential, which no wait mends.
 *
 * @param peers transports to the services that it calls, by name
 */
export function whileCredentialTaken(checkReady: ReadinessCheck, peers: Readonly<Record<string, Transport>>): ReadinessCheck {
  const checks = Object.entries(peers).map(([peer, transport]) => createCredentialLook(peer, transport));
  return async () => {
    await checkReady();
    await Promise.all(checks.map((check) => check()));
  };
}

/** A peer that says nothing is taken for what it was when it last did. */
function createCredentialLook(peer: string, transport: Transport): ReadinessCheck {
  const { check } = createClient(Health, transport);
  let refusal: Error | undefined;
  const look = async () => {
    try {
      await check({}, { timeoutMs: TIMEOUT_MS });
      refusal = undefined;
      return false;
    } catch (err) {
      if (!isCredentialRefused(err)) return false;
      refusal = credentialRefused(peer);
      return true;
    }
  };
  return async () => {
    for (let tries = 1; (await look()) && tries < TRIES_MAX; tries += 1);
    if (refusal) throw refusal;
  };
}
