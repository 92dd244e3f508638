import { withClient as withTimedClient } from '@latchkey/embedded/postgres/service-databases';
import type { Client } from 'pg';

/** As that of `embedded`, for statements that take minutes. */
export const withClient = <T>(url: string, use: (client: Client) => Promise<T>) => withTimedClient(url, use, 0);

/** Creates a database next to another one, and returns its URL. */
export async function makeDatabase(nextTo: string, name: string): Promise<string> {
  await withClient(nextTo, (client) => client.query(`create database ${name}`));
  return Object.assign(new URL(nextTo), { pathname: name }).href;
}
