import { findFreePort } from '@latchkey/testkit/free-port';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, startTestServer } from '../testing/servers.ts';
import { whileCredentialTaken } from './check-credential.ts';
import { checkServing } from './check-serving.ts';
import { createServiceTransport } from './transport.ts';

const REFUSED = 'apps refuses the credential of this process (SERVICE_CREDENTIALS)';

function connect(url: string, credential: string) {
  const transport = createServiceTransport(url, credential);
  onTestFinished(() => transport.close());
  return transport;
}

describe('readiness', () => {
  it('of one that needs another says which one refuses its credential, and which one is not ready', async () => {
    const { url } = await startTestServer([]);
    await checkServing(connect(url, CREDENTIAL), 'apps');
    await expect(checkServing(connect(url, 'wrong'), 'apps')).rejects.toThrow(REFUSED);
    const unready = await startTestServer([], { checkReady: () => Promise.reject(new Error('no schema')) });
    await expect(checkServing(connect(unready.url, CREDENTIAL), 'apps')).rejects.toThrow('apps is not ready');
  });

  it('of one that calls another ends where that refuses its credential, and only there', async () => {
    const { url } = await startTestServer([]);
    const proxy = await startTcpProxy(url);
    onTestFinished(() => proxy.close());
    const right = whileCredentialTaken(async () => undefined, { apps: connect(proxy.url, CREDENTIAL) });
    const wrong = whileCredentialTaken(async () => undefined, { apps: connect(proxy.url, 'wrong') });
    await right();
    await expect(wrong()).rejects.toThrow(REFUSED);
    await proxy.cut();
    await right();
    await expect(wrong()).rejects.toThrow(REFUSED);
  });

  it('of one that calls another comes back by itself, and is its own first of all', async () => {
    const port = await findFreePort();
    const refusing = await startTestServer([], { credentials: ['another'], port });
    let own: Error | undefined = new Error('no schema');
    const check = whileCredentialTaken(
      async () => {
        if (own) throw own;
      },
      { apps: connect(refusing.url, CREDENTIAL) },
    );
    await expect(check()).rejects.toThrow('no schema');
    own = undefined;
    await expect(check()).rejects.toThrow(REFUSED);
    await refusing.stop();
    await startTestServer([], { port });
    await check();
  });
});
