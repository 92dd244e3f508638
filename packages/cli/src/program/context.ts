import { Latchkey, LatchkeyError } from '@latchkey/client';
import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import pc from 'picocolors';
import { type Profile, profilesPath, readProfiles } from '../config/profiles.ts';
import { createPrompts } from '../output/prompts.ts';
import { formatTable, printable, printableLines, toJson } from '../output/text.ts';
import { verboseFetch } from '../output/verbose-fetch.ts';
import { readJobToken } from '../session/job-token.ts';
import { CliError } from './errors.ts';
import type { Io } from './io.ts';

export const DEFAULT_URL = 'http://localhost:8080';

export const isRealtimeUrl = (text: string): boolean => /^(wss?|https?):\/\//.test(text) && URL.canParse(text);

export interface GlobalOptions {
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly profile?: string;
  readonly yes?: boolean;
}

export interface Connection {
  readonly url: string;
  readonly key: string;
  /** True for the key of a CI job, which the token of the job was exchanged for. */
  readonly isExchanged?: boolean;
}

export class Context {
  readonly io: Io;
  readonly options: GlobalOptions;
  readonly prompts;
  readonly colors;
  readonly profileName: string;
  readonly profilesPath: string;
  /** A token is exchanged once. */
  #exchanged: Promise<string | undefined> | undefined;

  constructor(io: Io, options: GlobalOptions) {
    this.io = io;
    this.options = options;
    this.prompts = createPrompts(io);
    this.colors = pc.createColors(hasColors(io));
    this.profileName = options.profile ?? io.env.LATCHKEY_PROFILE ?? 'default';
    this.profilesPath = profilesPath(io.env);
  }

  async readProfile(): Promise<Profile | undefined> {
    const profiles = await readProfiles(this.profilesPath);
    return Object.hasOwn(profiles, this.profileName) ? profiles[this.profileName] : undefined;
  }

  /** LATCHKEY_URL and LATCHKEY_KEY win over the profile. Without a key, a CI job gets one. */
  async readConnection(): Promise<Connection> {
    const { LATCHKEY_URL, LATCHKEY_KEY } = this.io.env;
    const profile = await this.readProfile();
    // The key of a profile is for its own server only.
    const key = LATCHKEY_KEY?.trim() || (LATCHKEY_URL && LATCHKEY_URL !== profile?.url ? undefined : profile?.key);
    const url = LATCHKEY_URL || profile?.url;
    if (!key && url) {
      this.#exchanged ??= this.#exchangeJobToken(url);
      const exchanged = await this.#exchanged;
      if (exchanged) return { url, key: exchanged, isExchanged: true };
    }
    if (!key || !url) {
      const missing = LATCHKEY_KEY ? 'LATCHKEY_URL' : LATCHKEY_URL ? 'LATCHKEY_KEY' : 'LATCHKEY_URL and LATCHKEY_KEY';
      const profileOption = this.profileName === 'default' ? '' : ` --profile ${this.profileName}`;
      throw new CliError('forbidden', `Not signed in. Run "latchkey login${profileOption}", or set ${missing}.`);
    }
    return { url, key };
  }

  async #exchangeJobToken(url: string): Promise<string | undefined> {
    const job = await readJobToken(this.io.env, url);
    if (!job) return undefined;
    const audience = this.io.env.LATCHKEY_TRUSTED_ISSUER || job.audience;
    try {
      return (await this.createClient({ url }).trustedIssuers.exchange(job.token, { audience })).key;
    } catch (err) {
      if (!(err instanceof LatchkeyError) || !err.code.startsWith('invalid_')) throw err;
      throw new CliError('forbidden', `The token of this job was not exchanged for a key: ${err.message}`);
    }
  }

  /** The URL for commands that sign in by themselves. */
  async readUrl(): Promise<string> {
    const url = this.io.env.LATCHKEY_URL || (await this.readProfile())?.url;
    if (!url) throw new CliError('usage', 'The URL is unknown. Run "latchkey login", or set LATCHKEY_URL.');
    return url;
  }

  async client(): Promise<Latchkey> {
    return this.createClient(await this.readConnection());
  }

  /** @param connection without a key for a session */
  createClient({ url, key }: Omit<Connection, 'key'> & { readonly key?: string }): Latchkey {
    const fetch = this.options.verbose ? verboseFetch((line) => this.note(line)) : undefined;
    const realtimeUrl = this.#realtimeUrl(url);
    try {
      return new Latchkey({ url, key, fetch, realtimeUrl });
    } catch (err) {
      throw new CliError('usage', `${(err as Error).message}.`);
    }
  }

  /** REALTIME_PORT is a setting of `npm start`. Without both, the client derives the URL. */
  #realtimeUrl(url: string): string | undefined {
    const { LATCHKEY_REALTIME_URL, REALTIME_PORT: port } = this.io.env;
    if (LATCHKEY_REALTIME_URL) {
      if (isRealtimeUrl(LATCHKEY_REALTIME_URL)) return LATCHKEY_REALTIME_URL;
      throw new CliError('usage', 'LATCHKEY_REALTIME_URL is not a ws:// or wss:// URL. Correct it.');
    }
    if (!/^\d{1,5}$/.test(port ?? '') || !URL.canParse(url)) return undefined;
    const { protocol, hostname } = new URL(url);
    return `${protocol.replace('http', 'ws')}//${hostname}:${port}${REALTIME_PATH}`;
  }

  /** Prints the result: `data` as one JSON document for --json, else the text. */
  print(data: unknown, text: string): void {
    this.#write(data, text === '' ? '' : `${printableLines(text)}\n`);
  }

  /** Prints rows under headings, fitted to the terminal. */
  printTable(data: unknown, headings: readonly string[], rows: readonly (readonly string[])[]): void {
    const { stdout } = this.io;
    this.#write(
      data,
      formatTable(rows, { headings, columns: (stdout.isTTY && stdout.columns) || undefined, style: this.colors.dim }),
    );
  }

  printFields(data: unknown, fields: readonly (readonly string[])[]): void {
    this.#write(data, formatTable(fields, {}));
  }

  #write(data: unknown, text: string): void {
    this.io.stdout.write(this.options.json ? `${toJson(data, 2)}\n` : text);
  }

  /** Says on standard error what was done or is going on. */
  note(line: string): void {
    this.io.stderr.write(`${printable(line)}\n`);
  }

  /** Asks before something that can't be undone; --yes answers. */
  async confirm(message: string): Promise<void> {
    if (this.options.yes) return;
    const question = { message: printable(message), option: '--yes', what: 'a confirmation' };
    if (!(await this.prompts.confirm(question))) throw new CliError('failed', 'Not confirmed. Nothing was changed.');
  }
}

export type Colors = ReturnType<typeof pc.createColors>;

/** NO_COLOR with any value turns colours off: https://no-color.org */
export function hasColors({ env, stdout, stderr }: Io): boolean {
  return Boolean(stdout.isTTY && stderr.isTTY && !env.NO_COLOR && env.TERM !== 'dumb');
}
