import { hash } from 'node:crypto';
import { type Answer, Api } from '../client/api.ts';
import { readAuditLog } from '../client/audit-log.ts';
import { createKey, signUp } from '../client/caller.ts';
import { ACTION, listFiles, UPLOAD } from '../client/files.ts';
import { SeededRandom } from '../client/random.ts';
import { uploadHead } from '../client/routes.ts';
import { workUnderKills } from './kills.ts';
import { createRepeater, Tally } from './repeater.ts';
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
async function startRepeatingClient(target: Target, seed: number, tally: Tally) {
  const owner = await signUp(new Api(target.baseUrl));
  const { session, accountId } = owner;
  const { api: key, id: keyId, record } = await createKey(owner);
  const random = new SeededRandom(seed);
  const repeater = createRepeater(target.baseUrl, random, tally);
  const applications: KnownApplication[] = [];
  /** Names of the keys that can be used. */
  const keys = new Map<string, string>([[keyId, record.name]]);
  /** Action and subject of each entry that the audit log must have. */
  const audit: string[] = [`api_key.created ${keyId}`];
  let serial = 0;

  /** Makes a random change that is possible. @throws {Violation} */
  async function step(): Promise<void> {
    const application = applications.length > 0 ? random.pick(applications) : undefined;
    if (!application || (applications.length < APPLICATIONS_MAX && random.oneIn(12))) return createApplication();
    if (applications.length === APPLICATIONS_MAX && random.oneIn(12)) return deleteApplication(application);
    if (random.oneIn(5)) return changeKeys();
    if (random.oneIn(2)) return changeFiles(application);
    return changeSettings(application);
  }

  async function createApplication(): Promise<void> {
    const name = newName('application');
    const { headers } = await change({ method: 'POST', path: `${PANEL}/create-application`, body: { name } });
    const id = new URL(headers.get('location') ?? '', 'http://x').searchParams.get('applicationId') ?? '';
    const initial = { version: '1.0', status: 'online' as const, levels: [] };
    applications.push({ id, name, ...initial, files: new Map(), published: [], events: [] });
    audit.push(`application.created ${id}`);
  }

  async function deleteApplication(application: KnownApplication): Promise<void> {
    const { id } = application;
    const body = { applicationId: id, code: '' };
    await change({ method: 'DELETE', path: `${PANEL}/delete-application`, body });
    applications.splice(applications.indexOf(application), 1);
    audit.push(`application.deleted ${id}`);
  }

  async function changeSettings(application: KnownApplication): Promise<void> {
    const { id, events } = application;
    const query = { applicationId: id };
    const set = (field: string, value: string) =>
      change({ method: 'PATCH', path: `${PANEL}/update-application-settings`, query, body: { field, value } });
    const kind = random.below(13);
    if (kind >= 10) return changeReleases(application);
    if (kind < 5) {
      application.version = newName('v');
      await set('version', application.version);
      events.push(`version_changed ${application.version}`);
      audit.push(`application.setting_updated ${id}`);
    } else if (kind < 7) {
      application.status = application.status === 'online' ? 'paused' : 'online';
      await set('status', application.status);
      const action = application.status === 'online' ? 'resumed' : 'paused';
      events.push(`${action} `);
      audit.push(`application.${action} ${id}`);
    } else if (kind < 9) {
      const levels = [newName('l'), newName('l')];
      await change({
        ...{ method: 'POST', path: `${PANEL}/create-application-license-levels`, query },
        body: { levels },
      });
      application.levels = levels;
      audit.push(`application.license_levels_replaced ${id}`);
    } else {
      const body = { type: random.pick(['socketKey', 'httpKey']) };
      await change({ method: 'PATCH', path: `${PANEL}/update-api-keys`, query, body });
      audit.push(`application.runtime_key_rotated ${id}`);
    }
  }

  /**
   * Publishes a version, or yanks the highest. Feed, version, event and audit log change together.
   */
  async function changeReleases(application: KnownApplication): Promise<void> {
    const { id, events, published } = application;
    const path = `${PANEL}/releases`;
    const [, highest] = published.at(-1) ?? [];
    if (highest !== undefined && random.oneIn(3)) {
      await change({ method: 'POST', path: `${path}/${highest}/yank` });
      published.pop();
      audit.push(`release.yanked ${id}`);
      return;
    }
    serial += 1;
    const version = `1.0.${serial}`;
    const { data } = await change({ method: 'POST', path, query: { applicationId: id }, body: { version } });
    await change({ method: 'POST', path: `${path}/${data.id}/publish` });
    published.push([version, data.id]);
    application.version = version;
    events.push(`version_changed ${version}`);
    audit.push(`release.created ${id}`, `release.published ${id}`, `application.setting_updated ${id}`);
  }

  async function changeFiles({ id: applicationId, files }: KnownApplication): Promise<void> {
    const query = { applicationId };
    const kind = random.below(10);
    if (kind === 9) return createAndEndUpload(applicationId);
    const upload = (fileName: string, content: Buffer, more = {}) =>
      change({
        ...{ method: 'POST', path: UPLOAD, query: { ...query, fileName, ...more }, body: content },
        headers: { 'content-digest': `sha-256=:${hash('sha256', content, 'base64')}:` },
      });
    const newContent = () => Buffer.from(newName('c').repeat(1 + random.below(2_000)));
    if (files.size === 0 || (kind < 4 && countFiles() < FILES_MAX)) {
      const [name, content] = [newName('f'), newContent()];
      const { data } = await upload(name, content);
      files.set(data.id, { name, content, urls: 0 });
      audit.push(`file.uploaded ${data.id}`);
      return;
    }
    const [fileId, file] = random.pick([...files]);
    if (kind < 6) {
      await change({ method: 'POST', path: `${PANEL}/create-download-url`, query, body: { fileId } });
      file.urls += 1;
    } else if (kind === 6) {
      file.content = newContent();
      const { data } = await upload(file.name, file.content, { replace: 'true' });
      if (data.id !== fileId) throw new Violation(`The replaced file ${fileId} became ${data.id}`);
      audit.push(`file.replaced ${fileId}`);
    } else if (kind < 8) {
      const fileName = newName('f');
      await change({ method: 'POST', path: ACTION, query, body: { action: 'change_file_name', fileId, fileName } });
      file.name = fileName;
      audit.push(`file.renamed ${fileId}`);
    } else {
      await change({ method: 'POST', path: ACTION, query, body: { action: 'delete_file', fileId } });
      files.delete(fileId);
      audit.push(`file.deleted ${fileId}`);
    }
  }

  async function createAndEndUpload(applicationId: string): Promise<void> {
    const headers = uploadHead(applicationId, newName('u'), 1_000);
    const { data } = await change({ method: 'POST', path: `${PANEL}/uploads`, headers });
    await change({ method: 'DELETE', path: `${PANEL}/uploads/${data.id}`, headers: { 'tus-resumable': '1.0.0' } });
  }

  async function changeKeys(): Promise<void> {
    const { headers } = session;
    const path = `${PANEL}/api-keys`;
    const name = newName('key');
    // The first key makes the other changes.
    const others = [...keys.keys()].slice(1);
    const kind = random.below(4);
    if (others.length === 0 || (kind === 0 && keys.size < KEYS_MAX)) {
      const body = { name, scopes: ['files:read'], allApplications: true };
      const { data } = await change({ method: 'POST', path, body, headers });
      keys.set(data.id, name);
      audit.push(`api_key.created ${data.id}`);
      return;
    }
    const id = random.pick(others);
    if (kind === 1) {
      await change({ method: 'PATCH', path: `${path}/${id}`, body: { name }, headers });
      keys.set(id, name);
      audit.push(`api_key.updated ${id}`);
    } else if (kind === 2 && keys.size < KEYS_MAX) {
      const { data } = await change({ method: 'POST', path: `${path}/${id}/rotate`, headers });
      keys.set(data.id, keys.get(id) ?? '');
      keys.delete(id);
      audit.push(`api_key.rotated ${id}`);
    } else {
      await change({ method: 'POST', path: `${path}/${id}/revoke`, headers });
      keys.delete(id);
      audit.push(`api_key.revoked ${id}`);
    }
  }

  function change(sent: FaultRequest): Promise<Answer> {
    return repeater.change({ ...sent, headers: { ...(sent.headers?.cookie === undefined && key.headers), ...sent.headers } });
  }

  const countFiles = () => applications.reduce((sum, { files }) => sum + files.size, 0);

  function newName(prefix: string): string {
    serial += 1;
    return `${prefix}-${serial}`;
  }

  /**
   * Compares what is stored with what was changed: each effect exactly once.
   * @throws {Violation}
   */
  async function verify(): Promise<void> {
    const found = {
      applications: await readApplications(),
      keys: [] as string[],
      audit: [] as string[],
      uploads: [] as unknown[],
    };
    const { data: records } = await session.get(`${PANEL}/api-keys`);
    const isUsable = ({ revokedAt, expiresAt }: { revokedAt: string | null; expiresAt: string | null }) =>
      !revokedAt && !expiresAt;
    found.keys = records.filter(isUsable).map(({ id, name }: Record<string, string>) => `${id} ${name}`);
    const entries = (await readAuditLog(session)).filter(
      ({ actor, action }) => actor.kind !== 'service' && !action.startsWith('account.'),
    );
    found.audit = entries.map(({ action, subject }) => `${action} ${subject.id}`).sort();
    found.uploads = (await session.get(`${PANEL}/uploads`)).data;
    const expected = {
      applications: applications.map(describeApplication),
      keys: [...keys].map((pair) => pair.join(' ')),
      audit: audit.toSorted(),
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

  async function readApplications(): Promise<unknown[]> {
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

  return { step, verify };
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
}

/**
 * Has clients make changes with idempotency keys while everything is killed, and checks that each
 * had its effect exactly once.
 *
 * @throws {Violation}
 */
export async function repeatChanges(
  target: Target,
  { seed, changes, clients: clientCount }: RepeatOptions,
): Promise<Tally & { readonly kills: Record<string, number> }> {
  const random = new SeededRandom(seed);
  const tally = new Tally();
  const clients = await Promise.all(
    Array.from({ length: clientCount }, () => startRepeatingClient(target, random.below(2 ** 31), tally)),
  );
  const step = async (client: Awaited<ReturnType<typeof startRepeatingClient>>) => {
    if (tally.changes >= changes) return false;
    await client.step();
    return true;
  };
  const kills = await workUnderKills(target, random, clients, step);
  for (const client of clients) await client.verify();
  return { ...tally, kills };
}
