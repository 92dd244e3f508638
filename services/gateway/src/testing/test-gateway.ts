import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { AuditService } from '@latchkey/proto/latchkey/audit/v1/audit_pb';
import { AvatarService } from '@latchkey/proto/latchkey/files/v1/avatar_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { readGatewayConfig } from '../config.ts';
import type { FilesDataPath } from '../files-data-path.ts';
import { toCursorKey } from '../routes/audit-cursor.ts';
import { createGatewayService, type GatewayService } from '../service.ts';

/** What stands behind a gateway under test: fakes at the RPC boundary, each refusing what it was not given. */
export interface FakeServices {
  readonly authentication?: Partial<ServiceImpl<typeof AuthenticationService>>;
  readonly accounts?: Partial<ServiceImpl<typeof AccountService>>;
  readonly applications?: Partial<ServiceImpl<typeof ApplicationService>>;
  readonly files?: Partial<ServiceImpl<typeof FileService>>;
  readonly avatars?: Partial<ServiceImpl<typeof AvatarService>>;
  readonly apiKeys?: Partial<ServiceImpl<typeof ApiKeyService>>;
  /** The audit log of each service that keeps one. */
  readonly auditLogs?: Readonly<Record<'identity' | 'apps' | 'files', ServiceImpl<typeof AuditService>>>;
}

export interface TestGatewayOptions extends FakeServices {
  readonly redisUrl: string;
  readonly filesData?: Partial<FilesDataPath>;
  readonly env?: Readonly<Record<string, string>>;
  readonly logger?: Logger;
  readonly checkReady?: () => Promise<void>;
}

/** A gateway that listens on a port of its own. */
export interface TestGateway {
  readonly service: GatewayService;
  readonly port: number;
  readonly baseUrl: string;
}

async function unexpected(): Promise<never> {
  throw new Error('The test gave nothing to call');
}

/** Starts a gateway before fake services. The caller stops it. */
export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const {
    redisUrl,
    env,
    authentication = {},
    accounts = {},
    applications = {},
    files = {},
    avatars = {},
    apiKeys = {},
  } = options;
  const auditOf = (name: 'identity' | 'apps' | 'files') =>
    options.auditLogs ? [rpcRoute(AuditService, options.auditLogs[name])] : [];
  const logger = options.logger ?? createLogger('gateway', 'silent');
  const identityRoutes = [
    rpcRoute(AuthenticationService, authentication as ServiceImpl<typeof AuthenticationService>),
    rpcRoute(AccountService, accounts as ServiceImpl<typeof AccountService>),
    rpcRoute(ApiKeyService, apiKeys as ServiceImpl<typeof ApiKeyService>),
    ...auditOf('identity'),
  ];
  const appsRoutes = [rpcRoute(ApplicationService, applications as ServiceImpl<typeof ApplicationService>), ...auditOf('apps')];
  const filesRoutes = [
    rpcRoute(FileService, files as ServiceImpl<typeof FileService>),
    rpcRoute(AvatarService, avatars as ServiceImpl<typeof AvatarService>),
    ...auditOf('files'),
  ];
  const service = createGatewayService(readGatewayConfig({ HOST: '127.0.0.1', PORT: '0', REDIS_URL: redisUrl, ...env }), {
    identity: createDirectTransport(identityRoutes, logger),
    apps: createDirectTransport(appsRoutes, logger),
    files: createDirectTransport(filesRoutes, logger),
    filesData: { upload: unexpected, uploadAvatar: unexpected, download: unexpected, ...options.filesData },
    cursorKeys: [toCursorKey('a secret of this test')],
    logger,
    checkReady: options.checkReady ?? (async () => undefined),
  });
  await service.start();
  return { service, port: service.port, baseUrl: `http://127.0.0.1:${service.port}` };
}

/** An account as identity answers it. */
export const ACCOUNT = {
  id: '01900000-0000-7000-8000-000000000001',
  username: 'ada',
  email: 'ada@example.com',
  twoFactorEnabled: false,
  createdAt: timestampFromMs(0),
};
