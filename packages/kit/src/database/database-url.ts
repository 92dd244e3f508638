import { z } from 'zod';

const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s;
const WRITABLE = ['any', 'read-write', 'primary'];

/**
 * A URL for each host of a database URL. Several are separated by commas, as in libpq:
 * `postgres://user@first:5432,second:5432/name?target_session_attrs=read-write`.
 */
export function splitDatabaseUrl(text: string): string[] {
  const [, start = '', hosts = '', end = ''] = PARTS.exec(text) ?? [];
  return hosts.split(',').map((host) => `${start}${host}${end}`);
}

/** Hosts and ports of a database URL, for messages: without user and password. */
export const databaseHosts = (text: string): string => PARTS.exec(text)?.[2] ?? '';

/** The URL of a database; with several hosts, the server that accepts writes is used. */
export const databaseUrlSetting = z
  .string()
  .refine(
    (text) => PARTS.test(text) && splitDatabaseUrl(text).every((url) => URL.canParse(url)),
    'must be a URL that starts with postgres:// or postgresql://',
  )
  .refine(
    (text) => WRITABLE.includes(URL.parse(splitDatabaseUrl(text)[0] ?? '')?.searchParams.get('target_session_attrs') ?? 'any'),
    'must not ask for a server without writes: set target_session_attrs=read-write',
  );
