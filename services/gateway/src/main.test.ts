import { CREDENTIAL as OTHER_CREDENTIAL, startTestServer, testRoute } from '@latchkey/kit/testing/servers';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { describe, expect, it } from 'vitest';
import { runMain } from './testing/command.ts';

const CREDENTIAL = 'service-credential-of-32-characters';
const routes = [testRoute(AuthenticationService, { authenticate: async () => ({}) })];
const REASON = 'identity rejects the credential of this process (SERVICE_CREDENTIALS)';

/** A gateway before services of which identity takes another credential than it has. */
async function startRefused() {
  const identity = await startTestServer(routes, { credentials: [OTHER_CREDENTIAL], port: await findFreePort() });
  const other = await startTestServer([], { credentials: [CREDENTIAL] });
  const command = runMain({
    REDIS_URL: (await testRedis()).url,
    SERVICE_CREDENTIALS: CREDENTIAL,
    IDENTITY_URL: identity.url,
    APPS_URL: other.url,
    FILES_URL: other.url,
    HOST: '127.0.0.1',
    PORT: '0',
  });
  const { port } = await command.listening();
  return { ...command, identity, baseUrl: `http://127.0.0.1:${port}` };
}

describe('the process', { timeout: 60_000 }, () => {
  it('is not ready while a service rejects its credential, says so once, answers 503 meanwhile, and recovers by itself', async () => {
    const { identity, baseUrl, logLines, stdout } = await startRefused();
    const isReady = async () => (await fetch(`${baseUrl}/readyz`)).status === 200;
    expect(await isReady()).toBe(false);
    const headers = { authorization: `Bearer lk_mgmt_${'a'.repeat(16)}_${'b'.repeat(48)}` };
    const answer = await fetch(`${baseUrl}/api/v1/panel/get-applications`, { headers });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '2']);
    await eventually(() => expect(logLines('not ready')).toMatchObject([{ err: { message: REASON } }]));
    expect(stdout()).not.toContain(CREDENTIAL);
    await identity.stop();
    await startTestServer([], { credentials: [CREDENTIAL], port: Number(new URL(identity.url).port) });
    await eventually(isReady, { timeoutMs: 15_000 });
    await eventually(() => expect(logLines('ready again')).toHaveLength(1));
    expect(logLines('not ready').filter(({ err }) => (err as Error).message === REASON)).toHaveLength(1);
  });
});
