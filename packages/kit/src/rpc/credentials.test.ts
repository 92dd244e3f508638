import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { describe, expect, it } from 'vitest';
import { PATHS_TO_OUR_SERVER } from '../testing/paths.ts';
import { testRoute } from '../testing/servers.ts';
import { createCredentialCheck } from './credentials.ts';

/** What the log then says of the caller. */
const REFUSED = [['127.0.0.1', 1, 'calls without a valid service credential are refused']];

describe.each(PATHS_TO_OUR_SERVER)('$name', ({ open }) => {
  async function call(credential: string, credentials?: readonly string[]) {
    let calls = 0;
    const impl = {
      async deleteApplication() {
        calls += 1;
        return {};
      },
    };
    const { transport, lines } = await open([testRoute(ApplicationService, impl)], {
      credential,
      ...(credentials && { credentials }),
    });
    const refused = await createClient(ApplicationService, transport)
      .deleteApplication({})
      .then(
        () => undefined,
        (err: unknown) => ConnectError.from(err).code,
      );
    const told = lines.filter(({ level }) => level === 40).map(({ address, refusals, msg }) => [address, refusals, msg]);
    return { calls, refused, told };
  }

  it.each(['', 'wrong', 'test-credential2', 'test-credentia'])(
    'refuses the credential %j before the handler runs, and says to whom',
    async (credential) => {
      expect(await call(credential)).toEqual({ calls: 0, refused: Code.Unauthenticated, told: REFUSED });
    },
  );

  it('takes the old credential and the new one while they are exchanged', async () => {
    for (const credential of ['new', 'old'])
      expect(await call(credential, ['new', 'old'])).toEqual({ calls: 1, refused: undefined, told: [] });
    expect(await call('old', ['newer', 'new'])).toEqual({ calls: 0, refused: Code.Unauthenticated, told: REFUSED });
  });
});

describe('the check of a header', () => {
  const check = createCredentialCheck(['a', 'b']);

  it.each([undefined, null, '', 'a', 'Bearer', 'Bearer ', 'Bearer c', 'bearer a', 'Bearer a ', 'Bearer a, Bearer b'])(
    'refuses %j',
    (header) => {
      expect(check(header)).toBe(false);
    },
  );

  it.each(['Bearer a', 'Bearer b'])('takes %j', (header) => {
    expect(check(header)).toBe(true);
  });

  it('takes nothing when there is no credential', () => {
    expect(createCredentialCheck([])('Bearer ')).toBe(false);
  });
});
