import { migrations as appsMigrations } from '@latchkey/apps/db/migrations/index';
import { connectService } from '@latchkey/examples/grpc/latchkey-client.ts';
import { migrations as filesMigrations } from '@latchkey/files/db/migrations/index';
import { migrations as identityMigrations } from '@latchkey/identity/db/migrations/index';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, Api } from '../testing/api.ts';
import { cookieOf, createApplication, createKey, type Owner, PASSWORD, signUp, unique } from '../testing/caller.ts';
import { listNames, outcome, upload } from '../testing/files.ts';
import { type Fleet, startFleet } from '../testing/fleet/fleet.ts';
import { findLogLines, SERVICE_CREDENTIAL } from '../testing/instance.ts';
import { LiveClient, readSocketKey, setSetting } from '../testing/live.ts';
import { startUpload } from '../testing/running-upload.ts';

const MIGRATIONS = { apps: appsMigrations, files: filesMigrations, identity: identityMigrations };
const PER_ADDRESS = 60;
const PER_PRINCIPAL = 40;
const SIGN_INS = 10;
const UPLOADS = 6;

let fleet: Fleet;
let addresses = 0;
const newAddress = () => {
  addresses += 1;
  return { 'x-forwarded-for': `198.51.100.${addresses}` };
};

/** The same caller at one of the gateways, in turn, and from an address that nobody was counted for. */
const at = (api: Api, gateway: number) => new Api(fleet.gateways[gateway % 2]?.baseUrl ?? '', { ...api.headers });
const elsewhere = (api: Api, gateway: number) => at(api, gateway).with(newAddress());
const newOwner = () => signUp(fleet.api.with(newAddress()));
const settingsOf = (api: Api, applicationId: string) => api.get('/api/v1/panel/get-application-settings', { applicationId });

/** Sends many requests at once, half of them to each gateway. */
function spread(count: number, send: (gateway: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => send(index)));
}

const countOf = (answers: readonly Answer[], status: number) => answers.filter((answer) => answer.status === status).length;

/** Two of each service behind balancers: what one process allows or refuses, the other does too, to the request (promises R5, S7). */
describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('two gateways over two of each service', () => {
  beforeAll(async () => {
    fleet = await startFleet({
      env: {
        TRUSTED_PROXIES: 'loopback',
        RATE_LIMIT_IP_PER_MINUTE: String(PER_ADDRESS),
        RATE_LIMIT_PRINCIPAL_PER_MINUTE: String(PER_PRINCIPAL),
        AUTH_ATTEMPTS_PER_MINUTE: String(SIGN_INS),
        UPLOAD_ATTEMPTS_PER_MINUTE: String(UPLOADS),
      },
    });
  });
  afterAll(() => fleet?.stop());

  it('have applied each migration once, though all processes began to at once', async () => {
    const applied = await withClient(fleet.databaseUrl, async (client) => {
      const ofSchema = async (schema: string) =>
        (await client.query(`select name from ${schema}.kysely_migration order by name`)).rows;
      return Object.fromEntries(
        await Promise.all(Object.keys(MIGRATIONS).map(async (schema) => [schema, await ofSchema(schema)])),
      );
    });
    const expected = Object.entries(MIGRATIONS).map(([schema, all]) => [schema, Object.keys(all).map((name) => ({ name }))]);
    expect(applied).toEqual(Object.fromEntries(expected));
    // Had one been applied twice, the second would have failed, and its process ended.
    expect(await findLogLines(fleet.logDir, 'start failed')).toEqual([]);
  });

  it('do the work of both, and so do the services behind them', async () => {
    const { session } = await newOwner();
    const applicationId = await createApplication(elsewhere(session, 0));
    await spread(24, (gateway) => settingsOf(elsewhere(session, gateway), applicationId));
    for (const service of ['apps', 'identity'] as const) {
      const shares = fleet.processesOf(service).map(({ accepted }) => accepted);
      expect(Math.min(...shares), `${service} ${shares}`).toBeGreaterThan(0);
    }
  });

  describe('what was ended at one is refused by the other on the next request:', () => {
    /** Ends something at one gateway that the other one knows well, both ways round. */
    async function expectEnded(
      prepare: () => Promise<{ api: Api; end: (api: Api) => Promise<Answer>; code: string; read: string }>,
    ) {
      for (const gateway of [0, 1]) {
        const { api, end, code, read } = await prepare();
        const other = elsewhere(api, gateway + 1);
        for (let i = 0; i < 3; i += 1) expect(outcome(await other.get(read))).toBe('200');
        expect(outcome(await end(elsewhere(api, gateway)))).toBe('200');
        expect(outcome(await other.get(read))).toBe(code);
      }
    }
    const APPLICATIONS = '/api/v1/panel/get-applications';

    /** A key, and what its owner does to it at the gateway where the caller is. */
    const keyThat = (change: (session: Api, path: string) => Promise<Answer>, code: string) => async () => {
      const owner = await newOwner();
      const key = await createKey({ ...owner, session: elsewhere(owner.session, 0) });
      const end = ({ baseUrl, headers }: Api) => {
        const session = new Api(baseUrl, { ...owner.session.headers, 'x-forwarded-for': headers['x-forwarded-for'] ?? '' });
        return change(session, `/api/v1/panel/api-keys/${key.id}`);
      };
      return { api: key.api, end, code, read: APPLICATIONS };
    };

    it('a key that was revoked', () =>
      expectEnded(keyThat((session, path) => session.post(`${path}/revoke`), '401 api_key_revoked')));

    it('a key that lost the scope', () =>
      expectEnded(keyThat((session, path) => session.patch(path, { scopes: ['files:read'] }), '403 insufficient_scope')));

    it('a key that has expired', () => {
      // It takes effect when that moment has come, which the answer to the change is after.
      const expire = async (session: Api, path: string) => {
        const expiresAt = Date.now() + 1_500;
        const answer = await session.patch(path, { expiresAt: new Date(expiresAt).toISOString() });
        await eventually(() => Date.now() > expiresAt);
        return answer;
      };
      return expectEnded(keyThat(expire, '401 api_key_expired'));
    });

    it('a session', () =>
      expectEnded(async () => {
        const { session } = await newOwner();
        const end = (api: Api) => api.post('/api/v1/auth/sign-out');
        return { api: session, end, code: '401 unauth', read: '/api/v1/auth/session' };
      }));

    it('an application that was deleted, and the socket key that was rotated', async () => {
      const { session } = await newOwner();
      const applicationId = await createApplication(elsewhere(session, 0));
      const socketKey = await readSocketKey(elsewhere(session, 0), applicationId);
      const [client, later] = [new LiveClient(fleet.realtimeUrl, socketKey), new LiveClient(fleet.realtimeUrl, socketKey)];
      await Promise.all([client.ready(), later.ready()]);
      const rotate = elsewhere(session, 0).patch('/api/v1/panel/update-api-keys', { type: 'socketKey' }, { applicationId });
      expect(outcome(await rotate)).toBe('200');
      expect(await new LiveClient(fleet.realtimeUrl, socketKey).ended).toBe(401);
      expect(await Promise.all([client.ended, later.ended])).toEqual([4103, 4103]);
      const other = elsewhere(session, 1);
      expect(outcome(await settingsOf(other, applicationId))).toBe('200');
      await elsewhere(session, 0).delete('/api/v1/panel/delete-application', { applicationId, code: '' });
      expect(outcome(await settingsOf(other, applicationId))).toBe('404 not_found');
    });
  });

  describe('limits are not doubled by spreading over both:', () => {
    it('that of an address', async () => {
      const client = newAddress();
      const answers = await spread(PER_ADDRESS * 2, (gateway) => at(fleet.api, gateway).with(client).get('/nowhere'));
      expect([countOf(answers, 404), countOf(answers, 429)]).toEqual([PER_ADDRESS, PER_ADDRESS]);
    });

    it('that of a key, also while neither knows it', async () => {
      const { api } = await createKey(await newOwner());
      const answers = await spread(PER_PRINCIPAL * 2, (gateway) => elsewhere(api, gateway).get('/api/v1/panel/get-applications'));
      expect([countOf(answers, 200), countOf(answers, 429)]).toEqual([PER_PRINCIPAL, PER_PRINCIPAL]);
    });

    it('that of sign-ins from an address', async () => {
      const { email } = await newOwner();
      const client = newAddress();
      const answers = await spread(SIGN_INS * 2, (gateway) =>
        at(fleet.api, gateway).with(client).post('/api/v1/auth/sign-in', { email, password: PASSWORD }),
      );
      expect([countOf(answers, 200), countOf(answers, 429)]).toEqual([SIGN_INS, SIGN_INS]);
    });

    it('that of upload attempts of an account', async () => {
      const { session } = await newOwner();
      const applicationId = await createApplication(elsewhere(session, 0));
      const answers = [];
      for (let i = 0; i < UPLOADS + 4; i += 1) answers.push(await upload(elsewhere(session, i), applicationId, `file-${i}`));
      expect(answers.map(({ status }) => status)).toEqual([...Array(UPLOADS).fill(200), ...Array(4).fill(429)]);
    });
  });

  it('answer programs of others over gRPC, at either process', async () => {
    const { session } = await newOwner();
    const applicationId = await createApplication(elsewhere(session, 0));
    const socketKey = await readSocketKey(elsewhere(session, 0), applicationId);
    for (const { grpc = '' } of fleet.processesOf('apps')) {
      const options = { service: 'latchkey.apps.v1.ApplicationService', address: grpc, credential: SERVICE_CREDENTIAL };
      const apps = connectService(options);
      expect(await apps.call('LookUpApplication', { socketKey })).toMatchObject({ applicationId });
      const refused = apps.call('LookUpApplication', { httpKey: 'unknown' });
      await expect(refused).rejects.toMatchObject({ code: 16, reason: 'runtime_key_invalid', kind: 'unauthenticated' });
      apps.close();
    }
  });

  it('fifty rotations at once over both: exactly two succeed', async () => {
    const owner = await newOwner();
    const keys = await Promise.all([0, 1].map((gateway) => createKey({ ...owner, session: elsewhere(owner.session, gateway) })));
    const applicationId = await createApplication(elsewhere(owner.session, 0));
    const answers = await spread(50, (gateway) =>
      elsewhere(keys[gateway % 2]?.api ?? fleet.api, gateway + Math.floor(gateway / 2)).patch(
        '/api/v1/panel/update-api-keys',
        { type: gateway % 3 ? 'socketKey' : 'httpKey' },
        { applicationId },
      ),
    );
    expect([countOf(answers, 200), countOf(answers, 429)]).toEqual([2, 48]);
  });

  it('one upload of an account at a time over both, and the next as soon as it has ended', async () => {
    const { session } = await newOwner();
    const applicationId = await createApplication(elsewhere(session, 0));
    const running = await startUpload(elsewhere(session, 0), { applicationId, fileName: 'first' });
    await running.send(new Uint8Array(1_000));
    const second = await upload(elsewhere(session, 1), applicationId, 'second');
    expect([outcome(second), Number(second.headers.get('retry-after'))]).toEqual(['429 rate_limit_reached', expect.any(Number)]);
    expect(outcome(await running.finish())).toBe('200');
    expect(outcome(await upload(elsewhere(session, 1), applicationId, 'second'))).toBe('200');
    expect(await listNames(elsewhere(session, 0), applicationId)).toEqual(['second', 'first']);
  });

  it('an account made at one signs in at the other, and its events reach sockets of both nodes in order', async () => {
    const owner: Owner = await newOwner();
    const { email } = owner;
    const signedIn = await elsewhere(fleet.api, 1).post('/api/v1/auth/sign-in', { email, password: PASSWORD });
    const session = fleet.api.with({ cookie: cookieOf(signedIn.headers), 'x-csrf-token': signedIn.data.csrfToken });
    const applicationId = await createApplication(elsewhere(session, 0), unique('fleet-'));
    const socketKey = await readSocketKey(elsewhere(session, 1), applicationId);
    const clients = [0, 1, 2, 3].map(() => new LiveClient(fleet.realtimeUrl, socketKey));
    await Promise.all(clients.map((client) => client.ready()));
    expect(fleet.processesOf('realtime').every(({ accepted }) => accepted > 0)).toBe(true);
    for (let i = 1; i <= 6; i += 1) await setSetting(elsewhere(session, i), applicationId, 'version', `1.${i}`);
    for (const client of clients) {
      await eventually(() => expect(client.sequences()).toEqual([1, 2, 3, 4, 5, 6]));
      expect(client.flaws).toEqual([]);
      client.ws.terminate();
    }
  });
});
