import { AsyncLocalStorage } from 'node:async_hooks';
import { hash, type KeyObject } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { IDEMPOTENCY_KEY } from '@latchkey/contract/idempotency-key';
import { decrypt, deriveKey, encrypt } from '@latchkey/kit/crypto/secrets';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { isRead, methodPath, REPLAYED_HEADER, type RpcRoute } from '@latchkey/kit/rpc/route';
import type { QueryExecutorProvider } from 'kysely';
import { ACTOR_HEADER } from './actor.ts';
import { lockCall, type PreparedCall } from './idempotency.store.ts';

/** Metadata of calls that change something: a key of the caller (ADR 21). */
export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';

/**
 * Metadata of the gateway: the fingerprint of its request in base64url, and its route, which stands
 * for the method. Without it, the fingerprint is that of the message.
 */
export const IDEMPOTENCY_REQUEST_HEADER = 'x-latchkey-idempotency';

/** Identifies a call with a key. An upload stores it until its commit. */
export type CallIdentity = Pick<PreparedCall, 'id' | 'fingerprint'>;

interface IdempotentCall extends CallIdentity {
  readonly credential: string | null;
  readonly sealingKey: KeyObject;
  readonly onReplay?: () => void;
  /** Only the result of a call's first transaction is stored. */
  isTaken?: boolean;
  /** True where no earlier result was found as the call began: its transaction skips the query. */
  isLookedUp?: boolean;
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
  return call ? calls.run({ ...call, credential: null, sealingKey, isLookedUp: true }, run) : run();
}

export const hasKey = (): boolean => calls.getStore() !== undefined;

const sha256 = (data: string | Uint8Array) => hash('sha256', data, 'buffer');

function toIdentity(accountId: string, key: string, request: string): CallIdentity {
  const [fingerprint = '', route] = request.split(' ', 2);
  return { id: sha256(`${accountId.toLowerCase()}\n${route}\n${key}`), fingerprint: Buffer.from(fingerprint, 'base64url') };
}

/** The call that a gateway's headers of a request body name; undefined without a key. */
export function identifyCall(accountId: string, headers: Readonly<Record<string, unknown>>): CallIdentity | undefined {
  const { [IDEMPOTENCY_KEY_HEADER]: key, [IDEMPOTENCY_REQUEST_HEADER]: request } = headers;
  return typeof key === 'string' && typeof request === 'string' ? toIdentity(accountId, key, request) : undefined;
}

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
      const messageOf = () => sha256(toBinary(method.input as DescMessage, input)).toString('base64url');
      const request = context.requestHeader.get(IDEMPOTENCY_REQUEST_HEADER) ?? `${messageOf()} ${methodPath(method)}`;
      const call: IdempotentCall = {
        ...toIdentity(accountId, key, request),
        credential: secrets?.has(localName) ? credentialOf(context.requestHeader.get(ACTOR_HEADER)) : null,
        sealingKey,
        onReplay: () => context.responseHeader.set(REPLAYED_HEADER, 'true'),
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
  if (!found.result && !found.locked) throw commonErrors.idempotency_in_progress();
  if (!found.result) return undefined;
  if (!found.fingerprint.equals(fingerprint) || found.credential !== credential) throw commonErrors.idempotency_key_reused();
  call.onReplay?.();
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

/** Seals the result of a call; also in advance, for a process without the key. */
export const prepareCall = <C extends CallIdentity>(call: C, sealingKey: KeyObject, value: unknown): C & PreparedCall => ({
  ...call,
  result: encrypt(sealingKey, serialize(value).toString('base64'), call.id.toString('hex')),
});
