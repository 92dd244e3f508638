import { randomUUID } from 'node:crypto';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { expect, it } from 'vitest';
import { toKey, useTestGateway } from '../testing/test-gateway.ts';

let timeoutMs: number | undefined = 0;
const gateway = useTestGateway({
  authentication: { authenticate: async () => toKey(['releases:write']) },
  files: {
    inspectFile: async (_request, context) => {
      timeoutMs = context.timeoutMs();
      return {};
    },
  },
  releases: { createRelease: async () => ({ release: { id: randomUUID(), version: '1.4.0', channel: 'stable' } }) },
});

it('gives the files of a release, which are read whole, more time than other calls', async () => {
  const artifact = { fileId: randomUUID(), name: 'Acme.exe', platform: 'windows', arch: 'x64', kind: 'exe' };
  const path = `/api/v1/panel/releases?applicationId=${randomUUID()}`;
  const body = { version: '1.4.0', artifacts: [artifact] };
  const { envelope } = await gateway.send('POST', path, { headers: { authorization: 'Bearer a' }, body });
  expect(envelope).toMatchObject({ success: true });
  expect(timeoutMs).toBeGreaterThan(DEADLINES_MS.gateway);
});
