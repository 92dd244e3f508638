import { z } from 'zod';
import { headerSecretSetting, listSetting, portSetting, readConfig } from '../config.ts';

const settings = z
  .object({
    HOST: z.string().default('0.0.0.0'),
    /** As HOST, unless set: who keeps a process to one address means all of it. */
    METRICS_HOST: z.string().optional(),
    /** Nothing is measured where it is not set. */
    METRICS_PORT: portSetting.optional(),
    METRICS_TOKEN: headerSecretSetting.optional(),
    /** Read only to tell the token apart. */
    SERVICE_CREDENTIALS: listSetting.default([]),
  })
  .refine(({ METRICS_PORT, METRICS_TOKEN }) => METRICS_PORT === undefined || METRICS_TOKEN !== undefined, {
    path: ['METRICS_TOKEN'],
    message: 'is required with METRICS_PORT',
    // Also where others are wrong, so that all problems are told at once.
    when: () => true,
  })
  .refine(({ METRICS_TOKEN, SERVICE_CREDENTIALS }) => !SERVICE_CREDENTIALS.some((credential) => credential === METRICS_TOKEN), {
    path: ['METRICS_TOKEN'],
    message: 'must be none of SERVICE_CREDENTIALS',
    when: () => true,
  });

/** Where metrics are served, and to whom. */
export interface MetricsConfig {
  readonly host: string;
  readonly port: number;
  readonly token: string;
}

/** Reads the settings of metrics; undefined where nobody wants them. Throws ConfigError. */
export function readMetricsConfig(env: NodeJS.ProcessEnv): MetricsConfig | undefined {
  const { HOST, METRICS_HOST: host = HOST, METRICS_PORT: port, METRICS_TOKEN: token } = readConfig(settings, env);
  return port === undefined || token === undefined ? undefined : { host, port, token };
}
