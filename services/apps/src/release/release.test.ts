import { type Failure, whileFailing } from '@latchkey/audit/testing/failing-table';
import { ReleaseStatus } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { eventsOf, rowOf } from '../testing/rows.ts';
import { type OwnedRef, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

const FILE = '01900000-0000-7000-8000-00000000f11e';
const HOUR_MS = 3_600_000;

const artifact = { fileId: FILE, name: 'Setup', platform: 'windows', arch: 'x86_64', kind: 'exe', signature: '' };
const inspected = { fileId: FILE, signature: '', verifiedKey: '', byteSize: 7n, checksum: 'c', sha512: 's' };

async function draft(ref: OwnedRef, version = '1.4.0', channel = 'stable'): Promise<OwnedRef & { releaseId: string }> {
  const release = { version, channel, notes: '', rolloutPercent: 100, artifacts: [artifact] };
  const created = await apps.releases.createRelease({ ...ref, release });
  return { ...ref, releaseId: created.release?.id ?? '' };
}

const publish = (ref: OwnedRef & { releaseId: string }) => apps.releases.publishRelease({ ...ref, files: [inspected] });

async function feedOf({ applicationId, ...ref }: OwnedRef, channel = 'stable') {
  const { httpKey } = await apps.keysOf({ applicationId, ...ref });
  return (await apps.releases.getFeed({ applicationId, channel, httpKey })).releases;
}

/** Status, feed, version and events, which a publication changes together. */
async function stateOf(ref: OwnedRef & { releaseId: string }) {
  const { release } = await apps.releases.getRelease(ref);
  const version = (await rowOf<string>(apps.db, ref))?.version;
  return [release?.status, (await feedOf(ref)).map((found) => found.version), version, (await eventsOf(apps.db, ref)).length];
}

describe('a publication', () => {
  it('changes status, feed, version and event together', async () => {
    const ref = await draft(await apps.createOwned());
    expect(await stateOf(ref)).toEqual([ReleaseStatus.DRAFT, [], '1.0', 0]);
    await publish(ref);
    expect(await stateOf(ref)).toEqual([ReleaseStatus.PUBLISHED, ['1.4.0'], '1.4.0', 1]);
  });

  it.each<Omit<Failure, 'applicationId'>>([
    { table: 'application', operation: 'update' },
    { table: 'application_event', operation: 'insert' },
    { table: 'audit_entry', operation: 'insert' },
    { table: 'audit_entry', operation: 'insert', when: 'commit' },
  ])('that fails changes none of them: $table $when', async (failure) => {
    const ref = await draft(await apps.createOwned());
    const { applicationId } = ref;
    await whileFailing(apps.db, { ...failure, applicationId }, async () => {
      await expect(publish(ref)).rejects.toThrow();
    });
    expect(await stateOf(ref)).toEqual([ReleaseStatus.DRAFT, [], '1.0', 0]);
  });

  it('of two concurrent versions leaves the higher one in the feed and the version', async () => {
    const owned = await apps.createOwned();
    const refs = [await draft(owned, '1.9.0'), await draft(owned, '1.10.0')];
    await Promise.allSettled(refs.map(publish));
    const [, feed = [], version] = await stateOf(refs[0] as (typeof refs)[0]);
    expect([(feed as string[])[0], version]).toEqual(['1.10.0', '1.10.0']);
  });

  it.each(['1.9.0', '1.10.0+second', '1.10.0-rc.1'])('is rejected for a version that is not higher: %s', async (version) => {
    const owned = await apps.createOwned();
    const other = await draft(owned, version);
    await publish(await draft(owned, '1.10.0+first'));
    expect(await refusalOf(publish(other))).toMatchObject({ reason: 'release_downgrade' });
  });

  it('needs a signature by a signing key that is still pinned', async () => {
    const ref = await draft(await apps.createOwned());
    const key = `RWQ${'a'.repeat(53)}`;
    await apps.releases.updateReleaseSettings({ ...ref, signingKeys: { keys: [key] } });
    expect(await refusalOf(publish(ref))).toMatchObject({ reason: 'release_signature_invalid' });
  });
});

it('a file is either detached from a draft or needed by its publication', async () => {
  const owned = await apps.createOwned();
  for (let minor = 0; minor < 8; minor += 1) {
    const ref = await draft(owned, `1.${minor}.0`);
    const [published, detached] = await Promise.allSettled([
      publish(ref),
      apps.releases.detachFile({ applicationId: ref.applicationId, fileId: FILE }),
    ]);
    const isNeeded = detached.status === 'fulfilled' && detached.value.isNeeded;
    expect(isNeeded).toBe(published.status === 'fulfilled');
    if (isNeeded) await apps.releases.yankRelease(ref);
  }
});

it('a file that is replaced stays in drafts, and a publication that has read its former content fails', async () => {
  const ref = await draft(await apps.createOwned());
  const read = async () => (await apps.releases.getRelease(ref)).release?.artifacts ?? [];
  const publishRead = (revision: string) => apps.releases.publishRelease({ ...ref, files: [{ ...inspected, revision }] });
  const replaced = { applicationId: ref.applicationId, fileId: FILE, onlyCheck: true, isReplaced: true };
  const [former] = await read();
  expect(await apps.releases.detachFile(replaced)).toMatchObject({ isNeeded: false });
  expect(await refusalOf(publishRead(former?.revision ?? ''))).toMatchObject({ reason: 'release_changed' });
  const [present] = await read();
  await publishRead(present?.revision ?? '');
  expect(await apps.releases.detachFile(replaced)).toMatchObject({ isNeeded: true });
});

describe('a feed', () => {
  it('has no yanked release, and yanking again changes nothing', async () => {
    const owned = await apps.createOwned();
    const refs = [await draft(owned, '1.0.0'), await draft(owned, '1.1.0')] as const;
    for (const ref of refs) await publish(ref);
    for (let n = 0; n < 2; n += 1) await apps.releases.yankRelease(refs[1]);
    expect((await feedOf(owned)).map(({ version }) => version)).toEqual(['1.0.0']);
    const { rows } = await apps.db.query(`select action from audit_entry where account_id = $1 and action = 'release.yanked'`, [
      owned.accountId,
    ]);
    expect(rows).toHaveLength(1);
  });

  it('has the complete release below many partial roll-outs, and the last one for each platform', async () => {
    const owned = await apps.createOwned();
    const mac = { ...artifact, platform: 'darwin' };
    const publishOne = async (version: string, artifacts: readonly (typeof artifact)[], rolloutPercent: number) => {
      const release = { version, channel: 'stable', notes: '', rolloutPercent, artifacts: [...artifacts] };
      const { release: made } = await apps.releases.createRelease({ ...owned, release });
      await apps.releases.publishRelease({ ...owned, releaseId: made?.id ?? '', files: artifacts.map(() => inspected) });
    };
    await publishOne('1.0.0', [mac], 100);
    await publishOne('1.1.0', [artifact], 100);
    await publishOne('1.2.0', [artifact], 100);
    for (let minor = 3; minor < 13; minor += 1) await publishOne(`1.${minor}.0`, [artifact], 10);
    const versions = (await feedOf(owned)).map(({ version }) => version);
    expect(versions.slice(9)).toEqual(['1.3.0', '1.2.0', '1.0.0']);
  });

  it('and a list have bounds: lower versions lose their notes, then their place', async () => {
    const owned = await apps.createOwned();
    const create = async (version: string, signatureLength: number) => {
      const signature = '😀'.repeat(signatureLength);
      const artifacts = Array.from({ length: 32 }, (_, n) => ({ ...artifact, arch: `a${n}`, signature }));
      const release = { version, channel: 'stable', notes: 'x'.repeat(10_000), rolloutPercent: 100, artifacts };
      const created = await apps.releases.createRelease({ ...owned, release });
      const files = artifacts.map(() => ({ ...inspected, signature }));
      return () => apps.releases.publishRelease({ ...owned, releaseId: created.release?.id ?? '', files });
    };
    for (const version of ['1.0.0', '1.1.0', '1.2.0', '1.3.0']) await (await create(version, 500))();
    const offered = (await feedOf(owned)).map(({ version, notes }) => `${version} ${notes.length}`);
    expect(offered).toEqual(['1.3.0 10000', '1.2.0 10000', '1.1.0 0']);
    const drafts = ['2.0.0', '2.1.0', '2.2.0', '2.3.0', '2.4.0', '2.5.0', '2.6.0'];
    for (const version of drafts) await create(version, 1_024);
    const { releases: listed } = await apps.releases.listReleases(owned);
    expect(listed.map(({ version }) => version)).toEqual(drafts.slice(1).reverse());
  });

  it('has download URLs for a day, of that application, channel and name, while the release is published', async () => {
    const ref = await draft(await apps.createOwned());
    const other = await apps.createOwned();
    await publish(ref);
    const token = (await feedOf(ref))[0]?.artifacts[0]?.downloadToken ?? '';
    const url = { applicationId: ref.applicationId, channel: 'stable', token, name: artifact.name };
    const resolve = (change: object = {}) => apps.releases.resolveDownload({ ...url, ...change });
    expect(await resolve()).toMatchObject({ accountId: ref.accountId, fileId: FILE });
    const others = [{ applicationId: other.applicationId }, { channel: 'beta' }, { name: 'Setup.blockmap' }, { name: '\0' }];
    for (const change of others) expect(await refusalOf(resolve(change))).toMatchObject({ reason: 'feed_not_found' });
    apps.clock.advance(24 * HOUR_MS - 1);
    expect(await resolve()).toMatchObject({ fileId: FILE });
    apps.clock.advance(2 * HOUR_MS);
    expect(await refusalOf(resolve())).toMatchObject({ reason: 'feed_not_found' });
    const renewed = (await feedOf(ref))[0]?.artifacts[0]?.downloadToken ?? '';
    expect(await resolve({ token: renewed })).toMatchObject({ fileId: FILE });
  });

  it('is not served to a rotated key', async () => {
    const ref = await draft(await apps.createOwned());
    await publish(ref);
    const { httpKey } = await apps.keysOf(ref);
    await apps.client.rotateRuntimeKey({ ...ref, type: 2 });
    const feed = apps.releases.getFeed({ applicationId: ref.applicationId, channel: 'stable', httpKey });
    expect(await refusalOf(feed)).toMatchObject({ reason: 'feed_key_invalid' });
    expect(await feedOf(ref)).toHaveLength(1);
  });
});
