import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { onTestFinished } from 'vitest';
import { createDatabase } from '../database/database.ts';
import { memoryLogger } from './memory-logger.ts';

/** A database's pool until the test ends. */
export function openDatabase(url: string, options: Partial<Parameters<typeof createDatabase>[0]> = {}) {
  const opened = createDatabase<unknown>({ url, schema: 'public', logger: memoryLogger().logger, ...options });
  onTestFinished(opened.close);
  return opened;
}

/** A proxy in front of a server until the test ends. */
export async function openTcpProxy(targetUrl: string) {
  const proxy = await startTcpProxy(targetUrl);
  onTestFinished(proxy.close);
  return proxy;
}
