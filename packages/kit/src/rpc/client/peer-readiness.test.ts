import { expect, it } from 'vitest';
import { CREDENTIAL, openTransport, startHttpServer, startTestServer } from '../../testing/servers.ts';
import { checkServing, requireCredentialAccepted } from './peer-readiness.ts';

const REJECTED = 'apps rejects the credential of this process (SERVICE_CREDENTIALS)';

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
  const transport = openTransport(url);
  await checkServing(transport, 'apps', 200);
  await expect(checkServing(transport, 'apps', 200)).rejects.toThrow();
  expect(requests).toBe(4);
});

it('an optional service may be away, but must accept the credential', async () => {
  const { url, stop } = await startTestServer([]);
  let own: Error | undefined = new Error('no schema');
  const check = (credential = CREDENTIAL) =>
    requireCredentialAccepted(() => (own ? Promise.reject(own) : Promise.resolve()), { apps: openTransport(url, credential) })();
  await expect(check()).rejects.toThrow('no schema');
  own = undefined;
  await check();
  await expect(check('wrong')).rejects.toThrow(REJECTED);
  await stop();
  await check();
});
