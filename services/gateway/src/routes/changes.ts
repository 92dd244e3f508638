import { Readable } from 'node:stream';
import { ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
import { type AccountChange, ANY_CHANGE, LIVE_CLIENTS } from '@latchkey/kit/redis/account-changes';
import { type GivenCredential, readCredential, readUserAgent } from '../authentication/credential.ts';
import { concurrencyReached, type Limit } from '../rate-limit/rate-limits.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';

const PER_SESSION: Limit = { name: 'change-streams-per-session', max: 4, windowMs: 1_000 };
const PER_ACCOUNT: Limit = { name: 'change-streams-per-account', max: 16, windowMs: 1_000 };

/** Changes of this time are sent together, each once. */
const COLLECT_MS = 100;
const COLLECTED_MAX = 100;
/** Changes that wait, beyond which those of live clients become one without an id. */
const LIVE_CLIENTS_MAX = 10;
/** Below the time after which a silent connection is closed. */
const HEARTBEAT_MS = 15_000;
/** Text that may wait for a client to read it. */
const WAITING_BYTES_MAX = 64 * 1024;
/** The client reconnects then, which also verifies the session. */
const STREAM_MS_MAX = 3_600_000;

export function changeRoutes({ changes, authenticator }: RouteContext) {
  const perSession = new ConcurrencyLimit(PER_SESSION.max);
  const perAccount = new ConcurrencyLimit(PER_ACCOUNT.max);
  const acquire = (limit: Limit, counts: ConcurrencyLimit, key: string) => {
    const release = counts.acquire(key);
    if (release) return release;
    throw concurrencyReached(limit);
  };
  return [
    defineRoute('GET /api/v1/auth/changes', 'session', {
      operationId: 'streamChanges',
      summary: 'Follow changes of the account',
      description: [
        'Server-sent events: the `data` of each is `{kind, applicationId?}`, without values. `kind` is `application`, `release`, `file`, `api_key`, `account` or another, as before the dot of an action in the audit log; `live_clients` means that the number of live clients changed, of any application where no id is given; `any` means that changes may have been missed.',
        `The stream ends with its session. ${PER_SESSION.max} streams of a session, ${PER_ACCOUNT.max} of an account at each gateway; others are answered 429.`,
      ].join('\n\n'),
      bytesResponse: 'text/event-stream',
      message: '',
      handle: async ({ principal, raw, reply, clientIp }) => {
        const { accountId, credentialId, expiresAtMs } = principal;
        reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
        reply.type('text/event-stream; charset=utf-8');
        // Nothing would read the stream.
        if (raw.method === 'HEAD') return reply.send();
        const releaseSession = acquire(PER_SESSION, perSession, credentialId);
        try {
          const releaseAccount = acquire(PER_ACCOUNT, perAccount, accountId);
          const credential = readCredential(raw) as GivenCredential;
          const authenticate = () => authenticator.authenticate(credential, clientIp, readUserAgent(raw));
          const stream = new ChangeStream(Math.min(STREAM_MS_MAX, expiresAtMs - Date.now()), authenticate);
          stream.once('close', releaseAccount).once('close', releaseSession);
          // Also where the client leaves before anything is sent.
          reply.raw.once('close', () => stream.destroy());
          const end = await changes.listen(accountId, (change) => stream.receive(change));
          if (stream.closed) end();
          else stream.once('close', end);
          // Another gateway may have ended the session before the subscription.
          await stream.verify();
          return reply.send(stream);
        } catch (err) {
          releaseSession();
          throw err;
        }
      },
    }),
  ];
}

/** Server-sent events of the changes of an account. */
export class ChangeStream extends Readable {
  readonly #authenticate: () => Promise<unknown>;
  readonly #collected = new Map<string, AccountChange>();
  readonly #timers: NodeJS.Timeout[];
  #isEnded = false;
  #flushing: NodeJS.Timeout | undefined;

  /** @param authenticate rejects once the session has ended */
  constructor(lifetimeMs: number, authenticate: () => Promise<unknown>) {
    super({ read: () => undefined });
    this.#authenticate = authenticate;
    this.#timers = [setInterval(() => this.#write(':\n\n'), HEARTBEAT_MS), setTimeout(() => this.#end(), lifetimeMs)];
    this.once('close', () => {
      for (const timer of [...this.#timers, this.#flushing]) clearTimeout(timer);
    });
    this.#write('retry: 1000\n\n');
  }

  /** Sends a change with those of the next moment. Ends the stream where no more come. */
  receive(change: AccountChange | undefined): void {
    if (!change) {
      this.#end();
      return;
    }
    const [max, others] = change.kind === LIVE_CLIENTS ? [LIVE_CLIENTS_MAX, { kind: LIVE_CLIENTS }] : [COLLECTED_MAX, ANY_CHANGE];
    const collected = this.#collected.size < max ? change : others;
    this.#collected.set(`${collected.kind} ${collected.applicationId}`, collected);
    this.#flushing ??= setTimeout(() => void this.#flush(), COLLECT_MS);
  }

  /** Ends the stream if its session has ended, or that cannot be known. */
  async verify(): Promise<void> {
    await this.#authenticate().catch(() => this.#end());
  }

  async #flush(): Promise<void> {
    const changes = [...this.#collected.values()];
    this.#collected.clear();
    this.#flushing = undefined;
    // The end of a session is a change of the account.
    if (changes.some(({ kind }) => kind === 'account' || kind === 'any')) await this.verify();
    this.#write(changes.map((change) => `data: ${JSON.stringify(change)}\n\n`).join(''));
  }

  #write(text: string): void {
    if (this.destroyed || this.#isEnded) return;
    if (this.readableLength > WAITING_BYTES_MAX) this.destroy();
    else this.push(text);
  }

  #end(): void {
    this.#isEnded = true;
    this.push(null);
  }
}
