import { findFreePort } from '@latchkey/testkit/free-port';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { expect, it, onTestFinished } from 'vitest';
import { CREDENTIAL, openTransport, startHttpServer, startTestServer } from '../../testing/servers.ts';
import { checkServing, requireCredentialAccepted } from './peer-readiness.ts';

const REJECTED = 'apps refuses the credential of this process (SERVICE_CREDENTIALS)';

it('a required service must be ready and accept the credential', async () => {
  const { url } = await startTestServer([]);
  await checkServing(openTransport(url), 'apps');
  await expect(checkServing(openTransport(url, 'wrong'), 'apps')).rejects.toThrow(REJECTED);
  const unready = await startTestServer([], { checkReady: () => Promise.reject(new Error('no schema')) });
  await expect(checkServing(openTransport(unready.url), 'apps')).rejects.toThrow('apps is not ready');
});

it('a required service may have one process that hangs, but not hang itself', async () => {
  let requests = 0;
  const url = await startHttpServer((_req, res) => {
    requests += 1;
    if (requests === 2) res.writeHead(200, { 'content-type': 'application/proto' }).end(Buffer.from([0x08, 0x01]));
  });
  await checkServing(openTransport(url), 'apps');
  await expect(checkServing(openTransport(url), 'apps')).rejects.toThrow();
  expect(requests).toBe(4);
});

it('an optional service may be away, but counts as it did when it last answered', async () => {
  const { url } = await startTestServer([]);
  const proxy = await startTcpProxy(url);
  onTestFinished(() => proxy.close());
  const right = requireCredentialAccepted(async () => undefined, { apps: openTransport(proxy.url) });
  const wrong = requireCredentialAccepted(async () => undefined, { apps: openTransport(proxy.url, 'wrong') });
  for (const cut of [async () => undefined, () => proxy.cut()]) {
    await cut();
    await right();
    await expect(wrong()).rejects.toThrow(REJECTED);
  }
});

it('a process is ready again once its credential is accepted', async () => {
  const port = await findFreePort();
  const rejecting = await startTestServer([], { credentials: ['another'], port });
  let own: Error | undefined = new Error('no schema');
  const checkOwn = async () => {
    if (own) throw own;
  };
  const check = requireCredentialAccepted(checkOwn, { apps: openTransport(rejecting.url, CREDENTIAL) });
  await expect(check()).rejects.toThrow('no schema');
  own = undefined;
  await expect(check()).rejects.toThrow(REJECTED);
  await rejecting.stop();
  await startTestServer([], { port });
  await check();
});
