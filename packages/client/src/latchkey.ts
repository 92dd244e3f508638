import type { EventsOptions, LiveEvent } from './events/events.ts';
import { Http } from './http/http.ts';
import { type LatchkeyOptions, readOptions } from './options.ts';
import { createAccount, createLimits } from './resources/account.ts';
import { createApiKeys } from './resources/api-keys.ts';
import { createApplications, createLevels, createRuntimeKeys } from './resources/applications.ts';
import { createAuditLog } from './resources/audit-log.ts';
import { createAvatar } from './resources/avatar.ts';
import { createFiles } from './resources/files.ts';
import { createOidc } from './resources/oidc.ts';
import { createReleases } from './resources/releases.ts';
import { createTrustedIssuers } from './resources/trusted-issuers.ts';
import { createTwoFactor } from './resources/two-factor.ts';
import { createUploads } from './resources/uploads.ts';
import type { OpenContent } from './upload/content.ts';

/** The common part of the clients for Node.js and for browsers. */
export class LatchkeyBase<Source> {
  readonly applications: ReturnType<typeof createApplications>;
  readonly levels: ReturnType<typeof createLevels>;
  readonly keys: ReturnType<typeof createRuntimeKeys>;
  readonly files: ReturnType<typeof createFiles<Source>>;
  readonly uploads: ReturnType<typeof createUploads>;
  readonly releases: ReturnType<typeof createReleases>;
  readonly apiKeys: ReturnType<typeof createApiKeys>;
  readonly trustedIssuers: ReturnType<typeof createTrustedIssuers>;
  readonly account: ReturnType<typeof createAccount>;
  readonly twoFactor: ReturnType<typeof createTwoFactor>;
  readonly oidc: ReturnType<typeof createOidc>;
  readonly avatar: ReturnType<typeof createAvatar>;
  readonly auditLog: ReturnType<typeof createAuditLog>;
  readonly limits: ReturnType<typeof createLimits>;
  readonly #realtimeUrl: string;

  constructor(options: LatchkeyOptions, openContent: OpenContent<Source>) {
    const http = new Http(readOptions(options));
    this.applications = createApplications(http);
    this.levels = createLevels(http);
    this.keys = createRuntimeKeys(http);
    this.files = createFiles(http, openContent);
    this.uploads = createUploads(http);
    this.releases = createReleases(http);
    this.apiKeys = createApiKeys(http);
    this.trustedIssuers = createTrustedIssuers(http);
    this.account = createAccount(http);
    this.twoFactor = createTwoFactor(http);
    this.oidc = createOidc(http);
    this.avatar = createAvatar(http);
    this.auditLog = createAuditLog(http);
    this.limits = createLimits(http);
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
