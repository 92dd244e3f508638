import type { EventsOptions, LiveEvent } from './events/events.ts';
import { Http } from './http/http.ts';
import { type LatchkeyOptions, readOptions } from './options.ts';
import { Account, Limits } from './resources/account.ts';
import { ApiKeys } from './resources/api-keys.ts';
import { Applications, Levels, RuntimeKeys } from './resources/applications.ts';
import { AuditLog } from './resources/audit-log.ts';
import { Avatar } from './resources/avatar.ts';
import { Files } from './resources/files.ts';
import { Oidc } from './resources/oidc.ts';
import { Releases } from './resources/releases.ts';
import { TrustedIssuers } from './resources/trusted-issuers.ts';
import { TwoFactor } from './resources/two-factor.ts';
import { Uploads } from './resources/uploads.ts';
import type { Prepare } from './upload/upload.ts';

/** The common part of the clients for Node.js and for browsers. */
export class LatchkeyBase<Source> {
  readonly applications: Applications;
  readonly levels: Levels;
  readonly keys: RuntimeKeys;
  readonly files: Files<Source>;
  readonly uploads: Uploads;
  readonly releases: Releases;
  readonly apiKeys: ApiKeys;
  readonly trustedIssuers: TrustedIssuers;
  readonly account: Account;
  readonly twoFactor: TwoFactor;
  readonly oidc: Oidc;
  readonly avatar: Avatar;
  readonly auditLog: AuditLog;
  readonly limits: Limits;
  readonly #realtimeUrl: string;

  constructor(options: LatchkeyOptions, prepare: Prepare<Source>) {
    const http = new Http(readOptions(options));
    this.applications = new Applications(http);
    this.levels = new Levels(http);
    this.keys = new RuntimeKeys(http);
    this.files = new Files(http, prepare);
    this.uploads = new Uploads(http);
    this.releases = new Releases(http);
    this.apiKeys = new ApiKeys(http);
    this.trustedIssuers = new TrustedIssuers(http);
    this.account = new Account(http);
    this.twoFactor = new TwoFactor(http);
    this.oidc = new Oidc(http);
    this.avatar = new Avatar(http);
    this.auditLog = new AuditLog(http);
    this.limits = new Limits(http);
    this.#realtimeUrl = options.realtimeUrl ?? toRealtimeUrl(http.options.baseUrl);
  }

  /**
   * The live events of an application, each once and in order. Reconnects without limit, and
   * misses none that the service still stores; where events were missed, it yields
   * `latchkey.connection.ready` with the state of the application.
   *
   * Ends with the deletion of the application, and with the signal.
   *
   * @throws LatchkeyError `socket_key_rotated`, `socket_key_rejected` or `live_events_rejected`
   */
  async *events(options: EventsOptions): AsyncGenerator<LiveEvent, void> {
    // Loaded on demand, so that pages without live events load none of it.
    const { listen } = await import('./events/listen.ts');
    yield* listen({ ...options, url: options.url ?? this.#realtimeUrl });
  }
}

function toRealtimeUrl(baseUrl: string): string {
  const url = new URL(`${baseUrl}/api/v1/realtime`);
  url.protocol = url.protocol.replace('http', 'ws');
  if (url.port !== '') url.port = String(Number(url.port) + 1);
  return url.href;
}
