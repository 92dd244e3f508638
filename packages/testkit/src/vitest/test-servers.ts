/**
 * Values of the global set-up for test files, plain because they cross a process boundary.
 */
export interface TestServers {
  postgresUrl: string;
  testRolePassword: string;
  redisUrl: string;
  redisDatabases: number;
}

declare module 'vitest' {
  export interface ProvidedContext {
    latchkeyTestServers: TestServers;
  }
}
