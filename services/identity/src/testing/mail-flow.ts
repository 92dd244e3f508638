import { afterAll, beforeAll } from 'vitest';
import { openTestIdentity, outcomeOf } from './identity.ts';
import { startMailServer } from './mail-server.ts';
import { PASSWORD, sessionCredential, signUpSomeone } from './sample.ts';
import { sessionIdOf } from './two-factor.ts';

export const PUBLIC_URL = 'http://localhost:8080';
export const NEW_PASSWORD = 'another long passphrase';

/** A started service with a mail server, until the tests of the file end. */
export async function openTestMail() {
  const server = await startMailServer();
  const identity = await openTestIdentity({ ...server.env, PUBLIC_URL });
  beforeAll(() => identity.service.start());
  afterAll(() => server.stop());
  const { accounts, authentication, credentials } = identity;
  const forgot = (email: string) => credentials.startPasswordReset({ email });
  return {
    identity,
    server,
    forgot,
    /** True if no mail to an address waits. */
    async hasSentAllTo(email: string): Promise<boolean> {
      const waiting = 'select from mail where lower(recipient) = lower($1) and done_at is null and expires_at > $2';
      return (await identity.db.query(waiting, [email, identity.clock.now()])).rows.length === 0;
    },
    /** A new account with its session. */
    async owner() {
      const { account, session } = await signUpSomeone(identity);
      const ref = { accountId: account.id, sessionId: await sessionIdOf(identity, session) };
      return { ...ref, account, email: account.email, token: session.token };
    },
    signIn: (email: string, password = PASSWORD) => accounts.signIn({ email, password }),
    useSession: (token: string) => outcomeOf(authentication.authenticate({ credential: sessionCredential(token) })),
    /** Asks for a mail and returns the token of its link. */
    async tokenFor(email: string): Promise<string> {
      const count = server.mailsTo(email).length + 1;
      await forgot(email);
      return (await server.waitForMails(email, count)).at(-1)?.token ?? '';
    },
    reset: (token: string, newPassword = NEW_PASSWORD) => outcomeOf(credentials.resetPassword({ token, newPassword })),
  };
}
