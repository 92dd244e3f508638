import { z } from 'zod';
import { portSetting, serviceCredentialsSetting } from './config.ts';

/** The ports that a process takes by default. */
interface DefaultPorts {
  readonly port: number;
  readonly grpcPort: number;
}

/** Settings of a service that has no database as a process of its own. */
export function processSettingsWithoutDatabase(ports: DefaultPorts) {
  return {
    HOST: z.string().default('0.0.0.0'),
    PORT: portSetting.default(ports.port),
    GRPC_PORT: portSetting.default(ports.grpcPort),
    SERVICE_CREDENTIALS: serviceCredentialsSetting,
  };
}

/** Settings of a service that has a database as a process of its own. */
export function processSettings(ports: DefaultPorts) {
  return {
    ...processSettingsWithoutDatabase(ports),
    MIGRATE_ON_START: z.enum(['true', 'false'], 'must be true or false').default('true'),
  };
}

type SettingsOf<T extends z.core.$ZodLooseShape> = z.output<z.ZodObject<T>>;

/** What every service has as a process of its own. */
export type ProcessConfig = SettingsOf<ReturnType<typeof processSettingsWithoutDatabase>> &
  Partial<Pick<SettingsOf<ReturnType<typeof processSettings>>, 'MIGRATE_ON_START'>>;
