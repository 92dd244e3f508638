import { randomUUID } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Account, Session, SignUpRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { CreateApiKeyRequestSchema } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import type { TestInstance } from './identity.ts';

export const PASSWORD = 'correct horse battery';

/** A sign-up with a unique username and email. */
export function someSignUp(): Pick<SignUpRequest, 'username' | 'email' | 'password'> {
  const username = `user-${randomUUID().slice(-12)}`;
  return { username, email: `${username}@example.test`, password: PASSWORD };
}

/** A new account and its first session. */
export async function signUpSomeone({ accounts }: TestInstance): Promise<{ account: Account; session: Session }> {
  const { account, session } = await accounts.signUp(someSignUp());
  return { account: present(account), session: present(session) };
}

/** A new account's id. */
export async function someAccountId(identity: TestInstance): Promise<string> {
  return (await signUpSomeone(identity)).account.id;
}

/** The settings of a key that is open to all applications. */
export const OPEN_KEY = { name: 'A key', scopes: ['applications:read', 'files:read'], allApplications: true };

/** A new key, of a new account unless the settings name one. */
export async function createSomeKey(identity: TestInstance, settings: KeySettings = {}) {
  const accountId = settings.accountId ?? (await someAccountId(identity));
  const { apiKey, plaintextKey } = await identity.apiKeys.createApiKey({ ...OPEN_KEY, ...settings, accountId });
  return { apiKey: present(apiKey), plaintextKey, accountId };
}

export type KeySettings = MessageInitShape<typeof CreateApiKeyRequestSchema>;

/** A key with its text and its owner. */
export type SomeKey = Awaited<ReturnType<typeof createSomeKey>>;

export function keyCredential(plaintextKey: string) {
  return { case: 'apiKey' as const, value: plaintextKey };
}

export function sessionCredential(token: string) {
  return { case: 'sessionToken' as const, value: token };
}

/** The value, or a failure of the test where it is undefined. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('Nothing there');
  return value;
}
