import { randomUUID } from 'node:crypto';
import type { DescService } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { createLogger, type Logger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { afterAll, beforeAll } from 'vitest';
import { CLIENTS } from '../clients.ts';
import { readGatewayConfig } from '../config.ts';
import type { FilesDataPath } from '../files-data-path.ts';
import { createGatewayService } from '../service.ts';

/** Fakes at the RPC boundary. A call of a method that a test does not give fails. */
type Fakes = { readonly [N in keyof typeof CLIENTS]?: Partial<ServiceImpl<(typeof CLIENTS)[N][0]>> };

export interface TestGatewayOptions extends Fakes {
  readonly auditLogs?: Readonly<Record<'identity' | 'apps' | 'files', ServiceImpl<typeof AuditService>>>;
  readonly filesData?: Partial<FilesDataPath>;
  readonly redisUrl?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly logger?: Logger;
  readonly connectionsMax?: number;
  readonly checkReady?: () => Promise<void>;
}

/** Limits beyond what a test reaches. */
const NO_LIMITS = {
  RATE_LIMIT_IP_PER_MINUTE: '1000000',
  RATE_LIMIT_PRINCIPAL_PER_MINUTE: '1000000',
  AUTH_ATTEMPTS_PER_MINUTE: '1000000',
  UPLOAD_ATTEMPTS_PER_MINUTE: '1000000',
};

export async function unexpected(): Promise<never> {
  throw new Error('The test gave nothing to call');
}

/** A key with all applications of one account and the given scopes. */
export function toKey(scopes: readonly string[], facts: object = {}) {
  const principal = { accountId: ACCOUNT.id, username: ACCOUNT.username, credentialId: randomUUID(), allApplications: true };
  return { principal: { kind: PrincipalKind.API_KEY, ...principal, scopes: [...scopes], ...facts } };
}

/** Starts a gateway before fake services. The caller stops it. */
export async function startTestGateway(options: TestGatewayOptions = {}) {
  const { redisUrl = (await testRedis()).url, env, auditLogs, logger = createLogger('gateway', 'silent') } = options;
  const transport = (name: 'identity' | 'apps' | 'files') => {
    const entries = Object.entries(CLIENTS).filter(([, [, by]]) => by === name);
    const routes = entries.map(([client, [service]]) =>
      rpcRoute<DescService>(service, (options[client as keyof Fakes] ?? {}) as never),
    );
    return createDirectTransport([...routes, ...(auditLogs ? [rpcRoute(AuditService, auditLogs[name])] : [])], logger);
  };
  const service = createGatewayService(
    readGatewayConfig({ HOST: '127.0.0.1', PORT: '0', REDIS_URL: redisUrl, ...NO_LIMITS, ...env }),
    {
      identity: transport('identity'),
      apps: transport('apps'),
      files: transport('files'),
      filesData: {
        upload: unexpected,
        appendUpload: unexpected,
        uploadAvatar: unexpected,
        download: unexpected,
        ...options.filesData,
      },
      cursorSecrets: ['a secret of this test'],
      logger,
      connectionsMax: options.connectionsMax,
      checkReady: options.checkReady ?? (async () => undefined),
    },
  );
  await service.start();
  return { service, port: service.port, baseUrl: `http://127.0.0.1:${service.port}` };
}

/** A gateway for all tests of a file. */
export function useTestGateway(options: TestGatewayOptions = {}) {
  const gateway = {} as Awaited<ReturnType<typeof startTestGateway>>;
  beforeAll(async () => void Object.assign(gateway, await startTestGateway(options)));
  afterAll(() => gateway.service.stop());
  /** Sends a request, with JSON if there is a body; resolves with the status and the envelope. */
  const send = async (
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
  ) => {
    const response = await fetch(gateway.baseUrl + path, {
      method,
      redirect: 'manual',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const envelope = (await response.json()) as { code?: string; data?: unknown };
    return {
      status: response.status,
      headers: response.headers,
      envelope,
      outcome: `${response.status} ${envelope.code ?? ''}`.trim(),
    };
  };
  return Object.assign(gateway, { send });
}

/** An account as identity returns it. */
export const ACCOUNT = {
  id: '01900000-0000-7000-8000-000000000001',
  username: 'ada',
  email: 'ada@example.com',
  twoFactorEnabled: false,
  createdAt: timestampFromMs(0),
};

/** A session as identity opens it. */
export const SESSION = { token: 'a-token', csrfToken: 'csrf', expiresAt: { seconds: 4_000_000_000n, nanos: 0 } };
