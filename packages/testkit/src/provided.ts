/**
 * What the global set-up provides to test files, as plain values: they cross a process boundary.
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
