import { hash } from 'node:crypto';
import { type Answer, Api } from '../client/api.ts';
import { readAuditLog } from '../client/audit-log.ts';
import { createKey, type Owner, signUp } from '../client/caller.ts';
import { ACTION, listFiles, UPLOAD } from '../client/files.ts';
import { SeededRandom } from '../client/random.ts';
import { uploadHead } from '../client/routes.ts';
import { workUnderKills } from './kills.ts';
import { Repeater, Tally } from './repeater.ts';
import { type FaultRequest, Violation } from './request.ts';
import type { Target } from './target.ts';

const PANEL = '/api/v1/panel';
const APPLICATIONS_MAX = 4;
const FILES_MAX = 12;
const KEYS_MAX = 8;
interface KnownFile {
  name: string;
  content: Buffer;
  urls: number;
}

interface KnownApplication {
  readonly id: string;
  readonly name: string;
  version: string;
  status: 'online' | 'paused';
  levels: readonly string[];
  readonly files: Map<string, KnownFile>;
  /** Published releases, as [version, id], the lowest first. */
  readonly published: Array<readonly [string, string]>;
  /** Type and version of each event, in order. */
  readonly events: string[];
}

/**
 * A client of an account that makes one change after the other, each with an idempotency key, and
 * sends it until it has a response. It knows exactly what has to be stored then.
 */
class RepeatingClient {
  readonly #random: SeededRandom;
  readonly #repeater: Repeater;
  readonly #owner: Owner;
  readonly #key: Api['headers'];
  readonly #applications: KnownApplication[] = [];
  /** Names of the keys that can be used. */
  readonly #keys = new Map<string, string>();
  /** Action and subject of each entry that the audit log must have. */
  readonly #audit: string[] = [];
  #serial = 0;

  private constructor(repeater: Repeater, owner: Owner, key: Api['headers']) {
    this.#repeater = repeater;
    this.#random = repeater.random;
    this.#owner = owner;
    this.#key = key;
  }

  static async start(target: Target, seed: number, tally: Tally): Promise<RepeatingClient> {
    const owner = await signUp(new Api(target.baseUrl));
    const { api, id, record } = await createKey(owner);
    const client = new RepeatingClient(new Repeater(target.baseUrl, new SeededRandom(seed), tally), owner, api.headers);
    client.#keys.set(id, record.name);
    client.#audit.push(`api_key.created ${id}`);
    return client;
  }

  /** Makes a random change that is possible. @throws {Violation} */
  async step(): Promise<void> {
    const random = this.#random;
    const application = this.#applications.length > 0 ? random.pick(this.#applications) : undefined;
    if (!application || (this.#applications.length < APPLICATIONS_MAX && random.oneIn(12))) return this.#createApplication();
    if (this.#applications.length === APPLICATIONS_MAX && random.oneIn(12)) return this.#deleteApplication(application);
    if (random.oneIn(5)) return this.#changeKeys();
    if (random.oneIn(2)) return this.#changeFiles(application);
    return this.#changeSettings(application);
  }

  async #createApplication(): Promise<void> {
    const name = this.#newName('application');
    const { headers } = await this.#change({ method: 'POST', path: `${PANEL}/create-application`, body: { name } });
    const id = new URL(headers.get('location') ?? '', 'http://x').searchParams.get('applicationId') ?? '';
    const initial = { version: '1.0', status: 'online' as const, levels: [] };
    this.#applications.push({ id, name, ...initial, files: new Map(), published: [], events: [] });
    this.#audit.push(`application.created ${id}`);
  }

  async #deleteApplication(application: KnownApplication): Promise<void> {
    const { id } = application;
    const body = { applicationId: id, code: '' };
    await this.#change({ method: 'DELETE', path: `${PANEL}/delete-application`, body });
    this.#applications.splice(this.#applications.indexOf(application), 1);
    this.#audit.push(`application.deleted ${id}`);
  }

  async #changeSettings(application: KnownApplication): Promise<void> {
    const { id, events } = application;
    const query = { applicationId: id };
    const set = (field: string, value: string) =>
      this.#change({ method: 'PATCH', path: `${PANEL}/update-application-settings`, query, body: { field, value } });
    const kind = this.#random.below(13);
    if (kind >= 10) return this.#changeReleases(application);
    if (kind < 5) {
      application.version = this.#newName('v');
      await set('version', application.version);
      events.push(`version_changed ${application.version}`);
      this.#audit.push(`application.setting_updated ${id}`);
    } else if (kind < 7) {
      application.status = application.status === 'online' ? 'paused' : 'online';
      await set('status', application.status);
      const action = application.status === 'online' ? 'resumed' : 'paused';
      events.push(`${action} `);
      this.#audit.push(`application.${action} ${id}`);
    } else if (kind < 9) {
      const levels = [this.#newName('l'), this.#newName('l')];
      await this.#change({
        ...{ method: 'POST', path: `${PANEL}/create-application-license-levels`, query },
        body: { levels },
      });
      application.levels = levels;
      this.#audit.push(`application.license_levels_replaced ${id}`);
    } else {
      const body = { type: this.#random.pick(['socketKey', 'httpKey']) };
      await this.#change({ method: 'PATCH', path: `${PANEL}/update-api-keys`, query, body });
      this.#audit.push(`application.runtime_key_rotated ${id}`);
    }
  }

  /**
   * Publishes a version, or yanks the highest. Feed, version, event and audit log change together.
   */
  async #changeReleases(application: KnownApplication): Promise<void> {
    const { id, events, published } = application;
    const path = `${PANEL}/releases`;
    const [, highest] = published.at(-1) ?? [];
    if (highest !== undefined && this.#random.oneIn(3)) {
      await this.#change({ method: 'POST', path: `${path}/${highest}/yank` });
      published.pop();
      this.#audit.push(`release.yanked ${id}`);
      return;
    }
    this.#serial += 1;
    const version = `1.0.${this.#serial}`;
    const { data } = await this.#change({ method: 'POST', path, query: { applicationId: id }, body: { version } });
    await this.#change({ method: 'POST', path: `${path}/${data.id}/publish` });
    published.push([version, data.id]);
    application.version = version;
    events.push(`version_changed ${version}`);
    this.#audit.push(`release.created ${id}`, `release.published ${id}`, `application.setting_updated ${id}`);
  }

  async #changeFiles({ id: applicationId, files }: KnownApplication): Promise<void> {
    const query = { applicationId };
    const random = this.#random;
    const kind = random.below(10);
    if (kind === 9) return this.#createAndEndUpload(applicationId);
    const upload = (fileName: string, content: Buffer, more = {}) =>
      this.#change({
        ...{ method: 'POST', path: UPLOAD, query: { ...query, fileName, ...more }, body: content },
        headers: { 'content-digest': `sha-256=:${hash('sha256', content, 'base64')}:` },
      });
    const newContent = () => Buffer.from(this.#newName('c').repeat(1 + random.below(2_000)));
    if (files.size === 0 || (kind < 4 && this.#countFiles() < FILES_MAX)) {
      const [name, content] = [this.#newName('f'), newContent()];
      const { data } = await upload(name, content);
      files.set(data.id, { name, content, urls: 0 });
      this.#audit.push(`file.uploaded ${data.id}`);
      return;
    }
    const [fileId, file] = random.pick([...files]);
    if (kind < 6) {
      await this.#change({ method: 'POST', path: `${PANEL}/create-download-url`, query, body: { fileId } });
      file.urls += 1;
    } else if (kind === 6) {
      file.content = newContent();
      const { data } = await upload(file.name, file.content, { replace: 'true' });
      if (data.id !== fileId) throw new Violation(`The replaced file ${fileId} became ${data.id}`);
      this.#audit.push(`file.replaced ${fileId}`);
    } else if (kind < 8) {
      const fileName = this.#newName('f');
      await this.#change({ method: 'POST', path: ACTION, query, body: { action: 'change_file_name', fileId, fileName } });
      file.name = fileName;
      this.#audit.push(`file.renamed ${fileId}`);
    } else {
      await this.#change({ method: 'POST', path: ACTION, query, body: { action: 'delete_file', fileId } });
      files.delete(fileId);
      this.#audit.push(`file.deleted ${fileId}`);
    }
  }

  async #createAndEndUpload(applicationId: string): Promise<void> {
    const headers = uploadHead(applicationId, this.#newName('u'), 1_000);
    const { data } = await this.#change({ method: 'POST', path: `${PANEL}/uploads`, headers });
    await this.#change({ method: 'DELETE', path: `${PANEL}/uploads/${data.id}`, headers: { 'tus-resumable': '1.0.0' } });
  }

  async #changeKeys(): Promise<void> {
    const { headers } = this.#owner.session;
    const path = `${PANEL}/api-keys`;
    const name = this.#newName('key');
    // The first key makes the other changes.
    const others = [...this.#keys.keys()].slice(1);
    const kind = this.#random.below(4);
    if (others.length === 0 || (kind === 0 && this.#keys.size < KEYS_MAX)) {
      const body = { name, scopes: ['files:read'], allApplications: true };
      const { data } = await this.#change({ method: 'POST', path, body, headers });
      this.#keys.set(data.id, name);
      this.#audit.push(`api_key.created ${data.id}`);
      return;
    }
    const id = this.#random.pick(others);
    if (kind === 1) {
      await this.#change({ method: 'PATCH', path: `${path}/${id}`, body: { name }, headers });
      this.#keys.set(id, name);
      this.#audit.push(`api_key.updated ${id}`);
    } else if (kind === 2 && this.#keys.size < KEYS_MAX) {
      const { data } = await this.#change({ method: 'POST', path: `${path}/${id}/rotate`, headers });
      this.#keys.set(data.id, this.#keys.get(id) ?? '');
      this.#keys.delete(id);
      this.#audit.push(`api_key.rotated ${id}`);
    } else {
      await this.#change({ method: 'POST', path: `${path}/${id}/revoke`, headers });
      this.#keys.delete(id);
      this.#audit.push(`api_key.revoked ${id}`);
    }
  }

  #change(sent: FaultRequest): Promise<Answer> {
    return this.#repeater.change({ ...sent, headers: { ...(sent.headers?.cookie === undefined && this.#key), ...sent.headers } });
  }

  #countFiles = () => this.#applications.reduce((sum, { files }) => sum + files.size, 0);

  #newName(prefix: string): string {
    this.#serial += 1;
    return `${prefix}-${this.#serial}`;
  }

  /**
   * Compares what is stored with what was changed: each effect exactly once.
   * @throws {Violation}
   */
  async verify(): Promise<void> {
    const { session, accountId } = this.#owner;
    const found = { applications: await this.#read(), keys: [] as string[], audit: [] as string[], uploads: [] as unknown[] };
    const { data: keys } = await session.get(`${PANEL}/api-keys`);
    const isUsable = ({ revokedAt, expiresAt }: { revokedAt: string | null; expiresAt: string | null }) =>
      !revokedAt && !expiresAt;
    found.keys = keys.filter(isUsable).map(({ id, name }: Record<string, string>) => `${id} ${name}`);
    const entries = (await readAuditLog(session)).filter(
      ({ actor, action }) => actor.kind !== 'service' && !action.startsWith('account.'),
    );
    found.audit = entries.map(({ action, subject }) => `${action} ${subject.id}`).sort();
    found.uploads = (await session.get(`${PANEL}/uploads`)).data;
    const expected = {
      applications: this.#applications.map(describeApplication),
      keys: [...this.#keys].map((pair) => pair.join(' ')),
      audit: this.#audit.toSorted(),
      uploads: [],
    };
    for (const part of Object.keys(expected) as Array<keyof typeof expected>) {
      const [is, should] = [found[part], expected[part]].map((all) => all.map((one) => JSON.stringify(one)).sort()) as [
        string[],
        string[],
      ];
      const [extra, missing] = [subtract(is, should), subtract(should, is)];
      if (extra.length + missing.length > 0)
        throw new Violation(`${part} of ${accountId}: too many: ${extra.slice(0, 5)}; missing: ${missing.slice(0, 5)}`);
    }
  }

  async #read(): Promise<unknown[]> {
    const { session } = this.#owner;
    const { data } = await session.get(`${PANEL}/get-applications`);
    type Listed = { id: string; name: string; applicationApiKeys: { httpKey: string } };
    const read = async ({ id, name, applicationApiKeys: { httpKey } }: Listed) => {
      const query = { applicationId: id };
      const { data: settings } = await session.get(`${PANEL}/get-application-settings`, query);
      const { data: levels } = await session.get(`${PANEL}/get-application-license-levels`, query);
      const files = (await listFiles(session, id)).map((file) => [
        file.id,
        file.displayName,
        file.checksum,
        file.presignedUrlsCount,
      ]);
      const events: string[] = [];
      for (let [after, isMore] = ['', true]; isMore; ) {
        const { data: page } = await session.get(`${PANEL}/events`, { ...query, ...(after && { after }) });
        for (const { type, data } of page.events) events.push(`${type.split('.').at(-1)} ${data.version ?? ''}`);
        [after, isMore] = [page.next, page.events.length > 0];
      }
      const { data: releases } = await session.get(`${PANEL}/releases`, query);
      const published = releases.filter(({ status }: { status: string }) => status === 'published').reverse();
      const feed = await fetch(`${session.baseUrl}/api/v1/updates/${id}/stable/latest.json`, {
        headers: { authorization: `Bearer ${httpKey}` },
      });
      const offered = feed.status === 200 ? ((await feed.json()) as { version: string }).version : feed.status;
      const releaseIds = published.map((release: { version: string; id: string }) => [release.version, release.id]);
      const { version, status } = settings;
      return { id, name, version, status, levels, files: files.sort(), events, published: releaseIds, offered };
    };
    return Promise.all(data.map(read));
  }
}

function describeApplication({ files, ...application }: KnownApplication): unknown {
  const rows = [...files].map(([id, { name, content, urls }]) => [id, name, hash('sha256', content), urls]);
  const { id, name, version, status, levels, events, published } = application;
  const [offered = 404] = published.at(-1) ?? [];
  return { id, name, version, status, levels, files: rows.sort(), events, published, offered };
}

/**
 * The elements of one list that another one does not have, each as often as it has them more often.
 */
function subtract(from: readonly string[], other: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const one of other) counts.set(one, (counts.get(one) ?? 0) + 1);
  return from.filter((one) => {
    const count = counts.get(one) ?? 0;
    counts.set(one, count - 1);
    return count <= 0;
  });
}

interface RepeatOptions {
  readonly seed: number;
  readonly changes: number;
  readonly clients: number;
  /** Unlimited unless set. */
  readonly killsMax?: number;
}

/**
 * Has clients make changes with idempotency keys while everything is killed, and checks that each
 * had its effect exactly once.
 *
 * @throws {Violation}
 */
export async function repeatChanges(
  target: Target,
  { seed, changes, clients: clientCount, killsMax }: RepeatOptions,
): Promise<Tally & { readonly kills: Record<string, number> }> {
  const random = new SeededRandom(seed);
  const tally = new Tally();
  const clients = await Promise.all(
    Array.from({ length: clientCount }, () => RepeatingClient.start(target, random.below(2 ** 31), tally)),
  );
  const step = async (client: RepeatingClient) => {
    if (tally.changes >= changes) return false;
    await client.step();
    return true;
  };
  const kills = await workUnderKills(target, random, clients, step, killsMax);
  for (const client of clients) await client.verify();
  return { ...tally, kills };
}
