import { createServer } from 'node:net';

/**
 * A TCP port of 127.0.0.1 that nothing listens on at the moment of asking. Another process may take it before
 * the caller does, so whoever binds it must be ready to ask again.
 */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
