import { spawnSync } from 'node:child_process';

/** The oldest version whose behaviour the queues and limits rely on. */
const MAJOR_MIN = 6;

/** A program that runs as a Redis server, and how to call it. */
export interface RedisProgram {
  readonly command: string;
  /** The name it must be called by, where one program does several things. */
  readonly argv0?: string;
  /** Where its libraries lie that the system does not have. */
  readonly libraryPath?: string;
}

/** The environment to run it in. */
export function redisEnv({ libraryPath }: RedisProgram): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };
  if (libraryPath !== undefined) env.LD_LIBRARY_PATH = libraryPath;
  return env;
}

/** Whether it runs here and is a Redis or Valkey server that is new enough. */
export function isUsable(program: RedisProgram): boolean {
  const { status, stdout } = spawnSync(program.command, ['--version'], {
    encoding: 'utf8',
    env: redisEnv(program),
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 10_000,
    ...(program.argv0 === undefined ? {} : { argv0: program.argv0 }),
  });
  const major = /^(?:Redis|Valkey) server v=(\d+)/.exec(stdout ?? '')?.[1];
  return status === 0 && Number(major) >= MAJOR_MIN;
}
