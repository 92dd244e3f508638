import { randomBytes } from 'node:crypto';
import { type Entry, Ledger } from './ledger.ts';
import { type Call, call, describeOutcome, isLost, type Outcome } from './outcome.ts';

const PASSWORD = 'correct horse battery staple';
const SCOPES = ['applications:read', 'applications:create', 'applications:delete', 'files:upload', 'files:read', 'files:delete'];

/** Somebody with a management key, and what they know. */
export interface Account {
  readonly name: string;
  readonly id: string;
  readonly authorization: string;
  readonly ledger: Ledger;
  /** Clients that are at work at the same time. */
  readonly sessions: number;
}

/** An upload that its sender knows not to have been answered, with the bytes to send again. */
export interface Unanswered {
  readonly account: Account;
  readonly entry: Entry;
  readonly bytes: Buffer;
}

/** Creates an account with a key; everything has to be up. */
export async function createAccount(port: number, name: string, sessions: number): Promise<Account> {
  const username = `user${randomBytes(8).toString('hex')}`;
  const who = { username, email: `${username}@example.com`, password: PASSWORD };
  const { data, headers } = must(await call(port, { method: 'POST', path: '/api/v1/auth/sign-up', body: who }));
  const cookie = (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
  const key = must(
    await call(port, {
      method: 'POST',
      path: '/api/v1/panel/api-keys',
      body: { name: 'Fault tests', scopes: SCOPES, allApplications: true },
      headers: { cookie, 'x-csrf-token': data.csrfToken },
    }),
  );
  const authorization = `Bearer ${key.data.plaintextKey}`;
  return { name, id: data.account.id, authorization, ledger: new Ledger(), sessions };
}

/** Sends a request in the name of an account. */
export function callAs(account: Account, port: number, request: Call): Promise<Outcome> {
  return call(port, { ...request, headers: { authorization: account.authorization } });
}

/** Makes an application and adds it to what the account knows. Nothing is known of one that was in doubt, and nothing is done with it. */
export async function addApplication(account: Account, port: number): Promise<Outcome> {
  const name = `app-${randomBytes(8).toString('hex')}`;
  const made = await callAs(account, port, { method: 'POST', path: '/api/v1/panel/create-application', body: { name } });
  if (isLost(made) || made.status !== 200) return made;
  const found = await callAs(account, port, { method: 'GET', path: '/api/v1/panel/get-applications' });
  if (isLost(found) || found.status !== 200) return found;
  const { id } = found.data.find((application: { name: string }) => application.name === name);
  account.ledger.applications.push({ id, state: 'there' });
  return found;
}

function must(outcome: Outcome) {
  if (isLost(outcome) || outcome.status !== 200) throw new Error(`An account could not be made: ${describeOutcome(outcome)}`);
  return outcome;
}
