/** What the global set-up hands to the test files. Plain values only: they cross a process boundary. */
export interface TestServers {
  /** The superuser's URL. */
  postgresUrl: string;
  /** The password of the role that owns the tests' databases. */
  testRolePassword: string;
  redisUrl: string;
  redisDatabases: number;
}

declare module 'vitest' {
  export interface ProvidedContext {
    latchkeyTestServers: TestServers;
  }
}
