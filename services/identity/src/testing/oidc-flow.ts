import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { FinishOidcRequestSchema, FinishOidcResponse, OidcSignedIn } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { afterAll, beforeEach } from 'vitest';
import { openTestIdentity, type TestIdentity, type TestInstance } from './identity.ts';
import { REDIRECT_URI, startTestIssuer, type TestIssuer } from './issuer.ts';
import { PASSWORD } from './sample.ts';

/** An issuer, and a service that knows it, until the tests of the file end. */
export async function openTestOidc() {
  const issuer = await startTestIssuer();
  const identity = await openTestIdentity(issuer.env());
  beforeEach(() => issuer.reset());
  afterAll(() => issuer.stop());
  return { issuer, identity, instance: identity };
}

export type Return = MessageInitShape<typeof FinishOidcRequestSchema>;

export interface StartOptions {
  readonly issuerName?: string;
  readonly linkAccountId?: string;
  readonly password?: string;
  readonly code?: string;
  readonly sessionId?: string;
}

/** Begins a flow and signs in at the issuer: what the browser comes back with. */
export async function comeBack({ oidc }: TestInstance, issuer: TestIssuer, options: StartOptions = {}): Promise<Return> {
  const { issuerName = 'test', ...link } = options;
  const request = { issuer: issuerName, redirectUri: REDIRECT_URI, password: PASSWORD, ...link };
  const { authorizationUrl, flow } = await oidc.startOidc(request);
  const sentTo = new URL(authorizationUrl).searchParams.get('redirect_uri') ?? '';
  return { flow, redirectUri: sentTo, ...issuer.authorize(authorizationUrl) };
}

/** Signs in from beginning to end as the person of `claims`. */
export async function signInAt(identity: TestInstance, issuer: TestIssuer, change: Return = {}): Promise<OidcSignedIn> {
  const { outcome } = await finishAt(identity, issuer, change);
  if (outcome.case !== 'signedIn') throw new Error(`The flow ended as ${outcome.case}`);
  return outcome.value;
}

/** The same, however it ends. */
export async function finishAt(identity: TestInstance, issuer: TestIssuer, change: Return = {}): Promise<FinishOidcResponse> {
  return identity.oidc.finishOidc({ ...(await comeBack(identity, issuer)), ...change } as Return);
}

/** Claims of a new person with a verified email. */
export function someone(claims: object = {}) {
  const name = `oidc-${randomUUID().slice(-12)}`;
  return { sub: randomUUID(), preferred_username: name, email: `${name}@example.test`, email_verified: true, ...claims };
}

/** Links an account from beginning to end with one of its sessions, or with another. */
export async function linkAt(
  identity: TestInstance,
  issuer: TestIssuer,
  { accountId, token, code }: { accountId: string; token: string; code?: string },
): Promise<FinishOidcResponse> {
  const back = await comeBack(identity, issuer, { linkAccountId: accountId, ...(code && { code }) });
  return identity.oidc.finishOidc({ ...back, sessionToken: token } as Return);
}

/** Rows of accounts, sessions and links. */
export async function stateOf({ db }: TestIdentity): Promise<unknown[]> {
  const tables = ['account', 'session', 'oidc_link'];
  return Promise.all(tables.map(async (table) => (await db.query(`select * from ${table} order by 1, 2`)).rows));
}
