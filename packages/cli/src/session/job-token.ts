import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { CliError } from '../program/errors.ts';

/** Path of a projected service account token, in a volume called `latchkey`. */
const PROJECTED_TOKEN = '/var/run/secrets/latchkey/token';
const REQUEST_MS_MAX = 10_000;

export interface JobToken {
  readonly token: string;
  /** Audience that it was requested for, where this program chose it. */
  readonly audience?: string;
}

/**
 * The token that says which job this is: given in LATCHKEY_ID_TOKEN, as GitLab does, read from a
 * file, as Kubernetes projects it, or requested from GitHub Actions.
 *
 * @param url of the server, which is the audience unless LATCHKEY_AUDIENCE is set
 * @returns undefined outside of a job
 */
export async function readJobToken(env: NodeJS.ProcessEnv, url: string): Promise<JobToken | undefined> {
  const { LATCHKEY_ID_TOKEN: given, LATCHKEY_TOKEN_FILE: file, ACTIONS_ID_TOKEN_REQUEST_URL: requestUrl } = env;
  if (given?.trim()) return { token: given.trim() };
  const path = file || (existsSync(PROJECTED_TOKEN) ? PROJECTED_TOKEN : undefined);
  if (path) return { token: (await readFile(path, 'utf8')).trim() };
  const { ACTIONS_ID_TOKEN_REQUEST_TOKEN: requestToken } = env;
  if (!requestUrl || !requestToken) return undefined;
  const audience = env.LATCHKEY_AUDIENCE || url.replace(/\/+$/, '');
  return { audience, token: await requestJwt(requestUrl, requestToken, audience) };
}

async function requestJwt(requestUrl: string, requestToken: string, audience: string): Promise<string> {
  const headers = { authorization: `Bearer ${requestToken}`, accept: 'application/json' };
  const failed = (why: string) => new CliError('failed', `GitHub Actions gave no token for this job (${why}). Run it again.`);
  try {
    const url = new URL(requestUrl);
    url.searchParams.set('audience', audience);
    const response = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(REQUEST_MS_MAX) });
    const { value } = (await response.json()) as { readonly value?: unknown };
    if (response.ok && typeof value === 'string') return value;
    throw failed(`HTTP ${response.status}`);
  } catch (err) {
    throw err instanceof CliError ? err : failed((err as Error).name);
  }
}
