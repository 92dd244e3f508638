import { z } from 'zod';
import { portSetting, serviceCredentialsSetting } from './config.ts';

/** Settings that every service has as a process of its own, with the ports it takes by default. */
export function processSettings(ports: { readonly port: number; readonly grpcPort: number }) {
  return {
    HOST: z.string().default('0.0.0.0'),
    PORT: portSetting.default(ports.port),
    GRPC_PORT: portSetting.default(ports.grpcPort),
    SERVICE_CREDENTIALS: serviceCredentialsSetting,
    MIGRATE_ON_START: z.enum(['true', 'false'], 'must be true or false').default('true'),
  };
}

export type ProcessConfig = z.output<z.ZodObject<ReturnType<typeof processSettings>>>;
