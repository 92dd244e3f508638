import { randomUUID } from 'node:crypto';
import { IDEMPOTENCY_REQUEST_HEADER } from '@latchkey/audit/idempotency';
import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import { expect, it } from 'vitest';
import { toKey, useTestGateway } from '../testing/test-gateway.ts';

const fingerprints: unknown[] = [];
const gateway = useTestGateway({
  authentication: { authenticate: async () => toKey(['applications:create']) },
  applications: {
    createApplication: async (_request, { requestHeader }) => {
      fingerprints.push(requestHeader.get(IDEMPOTENCY_REQUEST_HEADER));
      return {};
    },
  },
});

/** Creates an application with a key. A late body is sent once the gateway waits for it. */
async function create(name: string, { isLate }: { readonly isLate: boolean }): Promise<void> {
  const body = JSON.stringify({ name });
  const { socket, received } = await openRawClient(gateway.port);
  const headers = {
    ...{ host: 'localhost', authorization: `Bearer ${randomUUID()}`, 'idempotency-key': 'k', 'content-type': 'application/json' },
    ...{ 'content-length': body.length, ...(isLate && { expect: '100-continue' }) },
  };
  const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}\r\n`);
  const head = `POST /api/v1/panel/create-application HTTP/1.1\r\n${lines.join('')}\r\n`;
  socket.write(isLate ? head : head + body);
  if (isLate) {
    await eventually(() => expect(received()).toContain(' 100 '));
    socket.write(body);
  }
  await eventually(() => expect(received()).toContain(' 200 '));
}

it('gives a repeated request one fingerprint, also when its body arrives after its head', async () => {
  await create('First name', { isLate: false });
  await create('First name', { isLate: true });
  await create('Other name', { isLate: true });
  const [first, repeated, other] = fingerprints;
  expect(repeated).toBe(first);
  expect(other).not.toBe(first);
});
