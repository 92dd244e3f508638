import { PassThrough } from 'node:stream';
import { acquireAll, ConcurrencyLimit } from '@latchkey/kit/http/concurrency-limit';
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
/** Text that may wait for a client to read it, twice: on both sides of the stream. */
const WAITING_BYTES_MAX = 32 * 1024;
/** The client reconnects then, which also verifies the session. */
const STREAM_MS_MAX = 3_600_000;

export function changeRoutes({ changes, authenticator }: RouteContext) {
  const perSession = new ConcurrencyLimit(PER_SESSION.max);
  const perAccount = new ConcurrencyLimit(PER_ACCOUNT.max);
  return {
    streamChanges: defineRoute('GET /api/v1/auth/changes', 'session', {
      summary: 'Follow changes of the account',
      description: [
        'Server-sent events: the `data` of each is `{kind, applicationId?}`, without values. `kind` is `application`, `release`, `file`, `api_key`, `account` or another, as before the dot of an action in the audit log; `live_clients` means that the number of live clients changed, of any application where no id is given; `any` means that changes may have been missed.',
        `The stream ends with its session. ${PER_SESSION.max} streams of a session, ${PER_ACCOUNT.max} of an account at each gateway; others are answered 429.`,
      ].join('\n\n'),
      bytesResponse: 'text/event-stream',
      handle: async ({ principal, raw, reply, clientIp }) => {
        const { accountId, credentialId, expiresAtMs } = principal;
        reply.headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
        reply.type('text/event-stream; charset=utf-8');
        // Nothing would read the stream.
        if (raw.method === 'HEAD') return reply.send();
        const release = acquireAll(
          [perSession, credentialId, () => concurrencyReached(PER_SESSION)],
          [perAccount, accountId, () => concurrencyReached(PER_ACCOUNT)],
        );
        const credential = readCredential(raw) as GivenCredential;
        const authenticate = () => authenticator.authenticate(credential, clientIp, readUserAgent(raw));
        const { stream, receive, verify } = createChangeStream(Math.min(STREAM_MS_MAX, expiresAtMs - Date.now()), authenticate);
        stream.once('close', release);
        // Also where the client leaves before anything is sent.
        reply.raw.once('close', () => stream.destroy());
        const end = await changes.listen(accountId, receive);
        if (stream.closed) end();
        else stream.once('close', end);
        // Another gateway may have ended the session before the subscription.
        await verify();
        return reply.send(stream);
      },
    }),
  };
}

/**
 * Server-sent events of the changes of an account.
 *
 * @param authenticate rejects once the session has ended
 */
export function createChangeStream(lifetimeMs: number, authenticate: () => Promise<unknown>) {
  const stream = new PassThrough({ highWaterMark: WAITING_BYTES_MAX });
  const collected = new Map<string, AccountChange>();
  const write = (text: string) => {
    if (stream.writable && !stream.write(text)) stream.destroy();
  };
  /** Ends the stream if its session has ended, or that cannot be known. */
  const verify = () => authenticate().catch(() => void stream.end());
  const flush = async () => {
    const changes = [...collected.values()];
    collected.clear();
    // The end of a session is a change of the account.
    if (changes.some(({ kind }) => kind === 'account' || kind === 'any')) await verify();
    write(changes.map((change) => `data: ${JSON.stringify(change)}\n\n`).join(''));
  };
  const timers = [setInterval(write, HEARTBEAT_MS, ':\n\n'), setTimeout(() => stream.end(), lifetimeMs)];
  stream.once('close', () => timers.forEach(clearTimeout));
  write('retry: 1000\n\n');
  return {
    stream,
    verify,
    /** Sends a change with those of the next moment. Ends the stream where no more come. */
    receive(change: AccountChange | undefined): void {
      if (!change) return void stream.end();
      const [max, others] =
        change.kind === LIVE_CLIENTS ? [LIVE_CLIENTS_MAX, { kind: LIVE_CLIENTS }] : [COLLECTED_MAX, ANY_CHANGE];
      const { kind, applicationId } = collected.size < max ? change : others;
      if (collected.size === 0) setTimeout(flush, COLLECT_MS);
      collected.set(`${kind} ${applicationId}`, { kind, applicationId });
    },
  };
}
