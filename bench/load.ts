import autocannon from 'autocannon';

/** What to ask for. */
export interface Target {
  readonly url: string;
  readonly headers?: Record<string, string>;
}

const CONNECTIONS = 32;

/**
 * Asks for one URL over and over.
 *
 * @returns the number of answers
 * @throws Error when any was not 200
 */
export async function load(target: Target, seconds: number): Promise<number> {
  const result = await autocannon({ ...target, connections: CONNECTIONS, duration: seconds });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${result.non2xx} failures and ${result.errors} errors from ${target.url}`);
  return result['2xx'];
}
