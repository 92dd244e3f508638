import { createHmac } from 'node:crypto';
import type { Answer, Api } from './api.ts';
import { type Owner, signUp } from './caller.ts';

const STEP_MS = 30_000;
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** A code as an authenticator app makes it (RFC 4226, 5.3, and RFC 6238). */
export function codeAt(secret: string, timeMs: number): string {
  const bits = [...secret].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(timeMs / STEP_MS)));
  const digest = createHmac('sha1', key).update(counter).digest();
  return String((digest.readUInt32BE((digest[19] as number) & 15) & 0x7fff_ffff) % 1_000_000).padStart(6, '0');
}

/** An account with its second factor on. */
export interface GuardedOwner extends Owner {
  readonly secret: string;
  /** The code that it was switched on with. */
  readonly usedCode: string;
  readonly recoveryCodes: readonly string[];
  /** The code of the next step, accepted early, as the current one is used up. For one use. */
  nextCode(): string;
  /** A code that is wrong now and in the next minutes. */
  wrongCode(): string;
}

/** Signs up an account and switches its second factor on. */
export async function signUpGuarded(api?: Api): Promise<GuardedOwner> {
  const owner = await signUp(api);
  const { secret } = (await owner.session.post('/api/v1/auth/two-factor/set-up')).data;
  const startedMs = Date.now();
  const usedCode = codeAt(secret, startedMs);
  const enabled = await owner.session.post('/api/v1/auth/two-factor/enable', { code: usedCode });
  if (enabled.status !== 200) throw new Error(`The second factor was not enabled: ${enabled.text}`);
  const near = Array.from({ length: 20 }, (_, i) => codeAt(secret, startedMs + (i - 2) * STEP_MS));
  return {
    ...owner,
    secret,
    usedCode,
    recoveryCodes: enabled.data.recoveryCodes,
    nextCode: () => codeAt(secret, startedMs + STEP_MS),
    wrongCode: () => ['000000', '111111', '222222', '333333'].find((code) => !near.includes(code)) ?? '',
  };
}

/** Signs in without a cookie. */
export function signInTo(api: Api, { email, password }: Pick<Owner, 'email' | 'password'>, code?: string): Promise<Answer> {
  const clean = api.with({ cookie: '', 'x-csrf-token': '' });
  return clean.post('/api/v1/auth/sign-in', { email, password, ...(code !== undefined && { code }) });
}
