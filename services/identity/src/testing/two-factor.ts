import { createHmac } from 'node:crypto';
import type { Session } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { SECOND_MS, type TestIdentity, type TestInstance } from './identity.ts';
import { PASSWORD, present, sessionCredential, signUpSomeone } from './sample.ts';

/** Length of a step (RFC 6238, 4.1). */
export const STEP_MS = 30 * SECOND_MS;

/** A code of an authenticator app, independent of the service's library (RFC 4226, 5.3). */
export function codeAt(secret: string, at: Date): string {
  const bits = [...secret].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'));
  const key = Buffer.from((bits.join('').match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at.getTime() / STEP_MS)));
  const digest = createHmac('sha1', key).update(counter).digest();
  const truncated = digest.readUInt32BE((digest.at(-1) as number) & 15) & 0x7fff_ffff;
  return String(truncated % 1_000_000).padStart(6, '0');
}

/** An account with its second factor on. */
export type Guarded = Awaited<ReturnType<typeof guardSomeone>>;

/** Id of a session. */
export async function sessionIdOf({ authentication }: TestInstance, session: Session): Promise<string> {
  const { principal } = await authentication.authenticate({ credential: sessionCredential(session.token) });
  return present(principal).credentialId;
}

/** A new account with a second factor turned on a minute ago, so that no current code is used. */
export async function guardSomeone(identity: TestIdentity) {
  const { account, session } = await signUpSomeone(identity);
  const ref = { accountId: account.id, sessionId: await sessionIdOf(identity, session) };
  const { secret } = await identity.twoFactor.setUpTwoFactor(ref);
  const codeOf = (steps: number) => codeAt(secret, new Date(identity.clock.now().getTime() + steps * STEP_MS));
  const { recoveryCodes } = await identity.twoFactor.enableTwoFactor({ ...ref, code: codeOf(0) });
  identity.clock.advance(2 * STEP_MS);
  return {
    ...ref,
    account,
    /** The session that it was switched on with. */
    session,
    secret,
    recoveryCodes,
    /** The code of a step, of now or as many later. */
    code: (steps = 0) => codeOf(steps),
    /** A code that is not of now, nor of a step before or after. */
    wrongCode: () => {
      const right = [-1, 0, 1].map(codeOf);
      return present(['000000', '111111', '222222', '333333'].find((code) => !right.includes(code)));
    },
    signIn: (code?: string, password = PASSWORD) =>
      identity.accounts.signIn({ email: account.email, password, ...(code !== undefined && { code }) }),
  };
}
