import { runService } from '@latchkey/kit/rpc/service-process';
import { readAppsProcessConfig } from './config.ts';
import { createAppsService } from './service.ts';

await runService(readAppsProcessConfig, createAppsService);
