import { Code } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { someSignUp } from '../testing/sample.ts';
import { createPasswords } from './password.ts';

const identity = await openTestIdentity();
const { signal } = new AbortController();

test('a password is hashed by argon2id with the parameters of OWASP, whatever keyboard composed it', async () => {
  const { hash, verify } = createPasswords();
  const stored = await hash('cre\u0300me bru\u0302le\u0301e');
  expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(await verify(stored, 'crème brûlée')).toBe(true);
});

test('more passwords than may wait are rejected by a rate limit, and the next one is accepted again', async () => {
  const { accounts } = identity.connect({ passwords: createPasswords({ concurrency: 1, waitingMax: 2, waitMs: () => 60_000 }) });
  const attempts = Array.from({ length: 10 }, () => outcomeOf(accounts.signUp(someSignUp())));
  expect((await Promise.all(attempts)).sort()).toEqual([...Array(3).fill('done'), ...Array(7).fill('queue_full')]);
  expect(await outcomeOf(accounts.signUp(someSignUp()))).toBe('done');
});

test('the passwords of a call wait for 2.5 s in all, then a rate limit rejects the call', async () => {
  const { hash } = createPasswords();
  const metadata = { limit: '200', windowSeconds: '3', remaining: '0', retryAfterSeconds: '1' };
  const waitsSince = performance.now() - 2_500;
  await expect(hash('second', { signal, waitsSince })).rejects.toMatchObject({ httpStatus: 429, metadata });
  await expect(createPasswords({ waitMs: () => 0 }).hash('first')).rejects.toMatchObject({ httpStatus: 429 });
});

test('a password whose caller is gone when its turn comes is not hashed', async () => {
  const { hash } = createPasswords({ concurrency: 1 });
  const caller = new AbortController();
  const hashed: string[] = [];
  const spied = (text: string) => ({ normalize: () => `${hashed.push(text)}` }) as unknown as string;
  const first = hash(spied('first'), { signal });
  const second = hash(spied('second'), { signal: caller.signal });
  caller.abort(new Error('gone'));
  await expect(second).rejects.toThrow('gone');
  await first;
  expect(hashed).toEqual(['first']);
});

test('a call whose deadline passes while its password waits changes nothing later', async () => {
  const passwords = createPasswords({ concurrency: 1, waitMs: () => 60_000 });
  const { accounts } = identity.connect({ passwords });
  const before = Array.from({ length: 15 }, () => passwords.hash('of others'));
  const account = someSignUp();
  await expect(accounts.signUp(account, { timeoutMs: 20 })).rejects.toMatchObject({ code: Code.Unknown });
  await Promise.all([...before, passwords.hash('after it')]);
  expect(await outcomeOf(accounts.signUp(account))).toBe('done');
});
