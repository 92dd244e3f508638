// Calls Latchkey's services with @grpc/grpc-js and Latchkey's `.proto` files. Copy it.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client, credentials, Metadata, type ServiceDefinition, type ServiceError, status } from '@grpc/grpc-js';
import { type AnyDefinition, loadSync, type MessageTypeDefinition } from '@grpc/proto-loader';

const PROTO_DIR = fileURLToPath(new URL('../../proto/schema/', import.meta.url));
const OWN_DIR = fileURLToPath(new URL('./', import.meta.url));

const files = [
  'latchkey/apps/v1/application.proto',
  'latchkey/files/v1/file.proto',
  'latchkey/rpc/v1/error.proto',
  'google/rpc/status.proto',
];
const definitions = loadSync(files, { includeDirs: [PROTO_DIR, OWN_DIR], longs: Number, enums: String, defaults: true });

/** Paths of PEM files for TLS between services: the authority's, the client's and its key. */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface ServiceOptions {
  /** Full name, such as `latchkey.apps.v1.ApplicationService`. */
  readonly service: string;
  /** `host:port` of its gRPC port. */
  readonly address: string;
  /** One of the deployment's SERVICE_CREDENTIALS. */
  readonly credential: string;
  readonly tls?: TlsFiles;
}

/** A call that Latchkey rejected, or that did not reach it: then it has no reason. */
export class LatchkeyError extends Error {
  override readonly name = 'LatchkeyError';
  /** Status code of gRPC. */
  readonly code: number;
  /** Stable name of the error, such as `application_not_found`. */
  readonly reason: string | undefined;
  /** Class of the failure, such as `not_found`. */
  readonly kind: string | undefined;

  constructor(err: ServiceError, address: string) {
    const info = errorInfo(err.metadata);
    const isUnreached = err.code === status.UNAVAILABLE && !info;
    super(isUnreached ? `There is no answer from ${address}: ${err.details}` : err.details, { cause: err });
    this.code = err.code;
    this.reason = info?.reason;
    this.kind = info?.kind;
  }
}

/**
 * A client of one service: `call('LookUpApplication', { socketKey })`. `requestId` appears in the
 * logs of every service that handles the call.
 */
export function connectService({ service, address, credential, tls }: ServiceOptions) {
  const methods = definitions[service] as ServiceDefinition;
  // Only methods with idempotency_level = NO_SIDE_EFFECTS may be retried.
  const client = new Client(address, tls ? secured(tls) : credentials.createInsecure(), { 'grpc.enable_retries': 0 });
  return {
    call<T>(method: string, request: object, options: { timeoutMs?: number; requestId?: string } = {}): Promise<T> {
      const { timeoutMs = 5_000, requestId } = options;
      const found = methods[method];
      if (!found) throw new Error(`${service} has no method ${method}`);
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${credential}`);
      if (requestId !== undefined) metadata.set('x-request-id', requestId);
      return new Promise((resolve, reject) => {
        const deadline = Date.now() + timeoutMs;
        const { path, requestSerialize, responseDeserialize } = found;
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, { deadline }, (err, answer) =>
          err ? reject(new LatchkeyError(err, address)) : resolve(answer as T),
        );
      });
    },
    close: () => client.close(),
  };
}

function secured({ ca, cert, key }: TlsFiles) {
  const [authority, ownKey, ownCert] = [readFileSync(ca), readFileSync(key), readFileSync(cert)];
  return credentials.createSsl(authority, ownKey, ownCert);
}

const decode = <T>(type: string, bytes: Uint8Array): T =>
  (definitions[type] as AnyDefinition as MessageTypeDefinition<object, object>).deserialize(Buffer.from(bytes)) as T;

/** The details of a rejection. Failures of the transport or the service have none. */
function errorInfo(metadata: Metadata | undefined): { reason: string; kind: string } | undefined {
  const [bytes] = metadata?.get('grpc-status-details-bin') ?? [];
  if (!(bytes instanceof Uint8Array)) return undefined;
  const { details } = decode<{ details: Array<{ type_url: string; value: Uint8Array }> }>('google.rpc.Status', bytes);
  const info = details.find(({ type_url }) => type_url.endsWith('/latchkey.rpc.v1.ErrorInfo'));
  return info && decode('latchkey.rpc.v1.ErrorInfo', info.value);
}
