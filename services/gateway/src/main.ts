import { runProcess } from '@latchkey/kit/lifecycle';
import { orExit } from '@latchkey/kit/rpc/service-process';
import { createServiceTransport } from '@latchkey/kit/rpc/transport';
import { readGatewayProcessConfig } from './config.ts';
import { createGatewayService } from './service.ts';

/** Longest time an ordered stop may take, in milliseconds. */
const STOP_TIMEOUT_MS = 30_000;

const config = orExit(() => readGatewayProcessConfig(process.env));
const credential = config.SERVICE_CREDENTIALS[0] as string;
const identity = createServiceTransport(config.IDENTITY_URL, credential);
const apps = createServiceTransport(config.APPS_URL, credential);
const files = createServiceTransport(config.FILES_URL, credential);
const gateway = createGatewayService(config, { identity, apps, files });

const stop = async () => {
  await gateway.stop();
  await Promise.all([identity.close(), apps.close(), files.close()]);
};
await runProcess({ start: () => gateway.start(), stop }, { logger: gateway.logger, stopTimeoutMs: STOP_TIMEOUT_MS });
