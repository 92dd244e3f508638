import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';

/** The AsyncAPI 3.0 document of the endpoint, which a test compares with the protocol. */
export const asyncApiDocument = JSON.parse(readFileSync(new URL('./asyncapi.json', import.meta.url), 'utf8'));

/** The document with the server that the client asked, as its headers name it. */
export function asyncApiFor({ headers }: Pick<IncomingMessage, 'headers'>): object {
  const protocol = headers['x-forwarded-proto'] === 'https' ? 'wss' : 'ws';
  const url = `${protocol}://${headers.host}`;
  const host = URL.canParse(url) ? new URL(url).host : 'localhost';
  const { realtime } = asyncApiDocument.servers;
  return { ...asyncApiDocument, servers: { realtime: { ...realtime, host, protocol } } };
}
