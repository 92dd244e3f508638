import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema } from '@latchkey/proto/latchkey/rpc/v1/error_pb';

/** Error as a rejected caller receives it. */
export interface Refusal {
  readonly connectCode: string;
  readonly message: string;
  readonly reason: string | undefined;
  readonly kind: string | undefined;
  readonly code: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /** None where the error was masked. */
  readonly detailCount: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The error that a call was rejected with. Throws if it succeeded, or failed with an error that
 * never crosses the wire.
 */
export async function refusalOf(call: Promise<unknown>): Promise<Refusal> {
  const err = await call.then(
    () => new Error('The call succeeded'),
    (reason: unknown) => reason,
  );
  if (!(err instanceof ConnectError)) throw err;
  const info = err.findDetails(ErrorInfoSchema)[0];
  return {
    connectCode: Code[err.code],
    message: err.rawMessage,
    reason: info?.reason,
    kind: info?.kind,
    code: info?.code,
    metadata: { ...info?.metadata },
    detailCount: err.details.length,
    headers: Object.fromEntries(err.metadata),
  };
}

/** The error for an application that does not exist or belongs to another account. */
export const NOT_FOUND: Refusal = {
  connectCode: 'NotFound',
  message: 'Not found',
  reason: 'application_not_found',
  kind: 'not_found',
  code: 'not_found',
  metadata: {},
  detailCount: 1,
  headers: {},
};
