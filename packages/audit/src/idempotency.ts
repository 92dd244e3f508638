import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, type KeyObject } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { IDEMPOTENCY_KEY, RESULT_LIFETIME_MS, SECRET_RESULT_LIFETIME_MS } from '@latchkey/contract/idempotency-key';
import { decrypt, deriveKey, encrypt } from '@latchkey/kit/crypto/secrets';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { isRead, methodPath, REPLAYED_HEADER, type RpcRoute } from '@latchkey/kit/rpc/route';
import type { QueryExecutorProvider } from 'kysely';
import { ACTOR_HEADER } from './actor.ts';
import { insertResult, lockCall } from './idempotency.store.ts';

/** Metadata of calls that change something: a key of the caller (ADR 21). */
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';

/**
 * Metadata of the gateway: the fingerprint of its request in base64url, and its route, which stands
 * for the method. Without it, the fingerprint is that of the message.
 */
export const IDEMPOTENCY_REQUEST_HEADER = 'x-latchkey-idempotency';

/** Identifies a call with a key. An upload stores it until its commit. */
export interface CallIdentity {
  readonly id: Buffer;
  readonly fingerprint: Buffer;
}

/** A call with the result that it has if its effect is made; another process stores it then. */
export interface PreparedCall extends CallIdentity {
  readonly result: Buffer;
}

interface IdempotentCall extends CallIdentity {
  readonly credential: string | null;
  readonly lifetimeMs: number;
  readonly sealingKey: KeyObject;
  readonly onReplay: () => void;
  /** Only the result of a call's first transaction is stored. */
  isTaken: boolean;
  /** True where no earlier result was found as the call began: its transaction skips the query. */
  isLookedUp: boolean;
}

const calls = new AsyncLocalStorage<IdempotentCall>();

/** The call with a key that this code runs for, once; undefined for others. */
export function takeCall(): IdempotentCall | undefined {
  const call = calls.getStore();
  if (!call || call.isTaken) return undefined;
  call.isTaken = true;
  return call;
}

/** Runs the transaction of a call that began in another request. Without an identity, just runs. */
export function resumeCall<T>(call: CallIdentity | undefined, sealingKey: KeyObject, run: () => T): T {
  if (!call) return run();
  const { id, fingerprint } = call;
  const options = {
    credential: null,
    lifetimeMs: RESULT_LIFETIME_MS,
    sealingKey,
    onReplay: () => undefined,
    isTaken: false,
    isLookedUp: true,
  };
  return calls.run({ id, fingerprint, ...options }, run);
}

export const hasKey = (): boolean => calls.getStore() !== undefined;

const toCallId = (accountId: string, route: string | undefined, key: string) =>
  sha256(`${accountId.toLowerCase()}\n${route}\n${key}`);

/** The call that a gateway's headers of a request body name; undefined without a key. */
export function identifyCall(accountId: string, headers: Readonly<Record<string, unknown>>): CallIdentity | undefined {
  const { [IDEMPOTENCY_KEY_HEADER]: key, [IDEMPOTENCY_REQUEST_HEADER]: request } = headers;
  if (typeof key !== 'string' || typeof request !== 'string') return undefined;
  const [print = '', route] = request.split(' ', 2);
  return { id: toCallId(accountId, route, key), fingerprint: Buffer.from(print, 'base64url') };
}

const sha256 = (...parts: ReadonlyArray<string | Uint8Array>) =>
  parts.reduce<ReturnType<typeof createHash>>((hash, part) => hash.update(part), createHash('sha256')).digest();

/** The key that seals results, as some hold secrets. */
export const deriveResultKey = (secretKey: string): KeyObject => deriveKey(secretKey, 'idempotency/result');

export interface IdempotencyOptions {
  readonly sealingKey: KeyObject;
  /** Methods whose response holds a secret: stored for an hour, for the same credential. */
  readonly secrets?: ReadonlySet<string>;
  /** Methods without side effects that a route with a key calls. */
  readonly reads?: ReadonlySet<string>;
}

/**
 * Wraps a service so that transactions of calls with a key store and replay their results (ADR 21).
 * The calls of one account and route share keys.
 */
export function withIdempotency({ service, impl }: RpcRoute, options: IdempotencyOptions): RpcRoute {
  const { sealingKey, secrets, reads } = options;
  const wrapped = service.methods.flatMap((method) => {
    const { localName } = method;
    const handler = impl[localName] as ((input: Message, context: HandlerContext) => unknown) | undefined;
    if (!handler || (isRead(method) && !reads?.has(localName))) return [];
    const handle = (input: Message, context: HandlerContext) => {
      const key = context.requestHeader.get(IDEMPOTENCY_KEY_HEADER);
      const { accountId } = input as { readonly accountId?: string };
      if (key === null || !accountId) return handler.call(impl, input, context);
      if (!IDEMPOTENCY_KEY.test(key)) throw commonErrors.idempotency_key_invalid();
      const request = context.requestHeader.get(IDEMPOTENCY_REQUEST_HEADER);
      const [print, route] = request?.split(' ', 2) ?? [undefined, methodPath(method)];
      const holdsSecret = secrets?.has(localName) === true;
      const call: IdempotentCall = {
        id: toCallId(accountId, route, key),
        fingerprint: print === undefined ? sha256(toBinary(method.input as DescMessage, input)) : Buffer.from(print, 'base64url'),
        credential: holdsSecret ? credentialOf(context.requestHeader.get(ACTOR_HEADER)) : null,
        lifetimeMs: holdsSecret ? SECRET_RESULT_LIFETIME_MS : RESULT_LIFETIME_MS,
        sealingKey,
        onReplay: () => context.responseHeader.set(REPLAYED_HEADER, 'true'),
        isTaken: false,
        isLookedUp: false,
      };
      return calls.run(call, () => handler.call(impl, input, context));
    };
    return [[localName, handle]];
  });
  return { service, impl: { ...impl, ...Object.fromEntries(wrapped) } };
}

/** Kind and id of a credential, without the address. */
const credentialOf = (actor: string | null) => (actor ?? '').split(' ', 2).join(' ');

/**
 * The result of an earlier call with the same key, with a lock on the key until the transaction
 * ends.
 *
 * @throws `idempotency_key_reused`, `idempotency_in_progress`
 */
export async function findResult<T>(tx: QueryExecutorProvider, call: IdempotentCall): Promise<{ readonly value: T } | undefined> {
  const { id, fingerprint, credential, sealingKey } = call;
  const found = await lockCall(tx, id);
  if (!found?.result) {
    if (!found?.locked) throw commonErrors.idempotency_in_progress();
    return undefined;
  }
  const isSame = found.fingerprint?.equals(fingerprint) === true && found.credential === credential;
  if (!isSame) throw commonErrors.idempotency_key_reused();
  call.onReplay();
  return { value: deserialize(Buffer.from(decrypt(sealingKey, found.result, id.toString('hex')), 'base64')) };
}

/**
 * The result of an earlier call with the key of this one; undefined without a key or a result.
 *
 * @throws as {@link findResult}
 */
export async function findReplay<T>(db: QueryExecutorProvider): Promise<T | undefined> {
  const call = takeCall();
  return call && (await findResult<T>(db, call))?.value;
}

/** Another call stored its result first. */
export class ResultTakenError extends Error {}

const seal = (sealingKey: KeyObject, { id }: Pick<CallIdentity, 'id'>, value: unknown) =>
  encrypt(sealingKey, serialize(value).toString('base64'), id.toString('hex'));

/** Seals the result of a call in advance, for a process without the key. */
export const prepareCall = (call: CallIdentity, sealingKey: KeyObject, value: unknown): PreparedCall => ({
  ...call,
  result: seal(sealingKey, call, value),
});

/**
 * Stores a prepared result in the transaction of its effect.
 *
 * @throws ResultTakenError
 */
export async function storePrepared(tx: QueryExecutorProvider, call: PreparedCall): Promise<void> {
  if (!(await insertResult(tx, { ...call, credential: null, lifetimeMs: RESULT_LIFETIME_MS }))) throw new ResultTakenError();
}

/**
 * Runs a transaction and stores its result in it, or returns the result of an earlier one.
 *
 * @throws what `run` and {@link findResult} throw; ResultTakenError
 */
export async function runOnce<T>(
  tx: QueryExecutorProvider,
  call: IdempotentCall,
  run: () => Promise<T>,
  onStored: (proof: { readonly id: Buffer; readonly xid: string }) => void,
): Promise<T> {
  const { id, fingerprint, credential, lifetimeMs, sealingKey } = call;
  const earlier = call.isLookedUp ? undefined : await findResult<T>(tx, call);
  if (earlier) return earlier.value;
  const value = await run();
  const result = seal(sealingKey, call, value);
  const xid = await insertResult(tx, { id, fingerprint, credential, result, lifetimeMs });
  if (xid === undefined) throw new ResultTakenError();
  onStored({ id, xid });
  return value;
}
