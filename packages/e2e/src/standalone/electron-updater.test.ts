import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createApplication, signUp } from '../client/caller.ts';
import { outcome, upload } from '../client/files.ts';

const require = createRequire(import.meta.url);
const { NsisUpdater } = require('electron-updater/out/NsisUpdater.js');
const { ElectronHttpExecutor } = require('electron-updater/out/electronHttpExecutor.js');

/** Requests by Node.js in place of Electron. */
class NodeExecutor extends ElectronHttpExecutor {
  createRequest(options: http.RequestOptions, callback: (response: http.IncomingMessage) => void) {
    return http.request(options, callback);
  }

  /** Only Electron has an event for redirects; the common code follows the others. */
  addRedirectHandlers() {}
}

/** electron-updater of an installed Windows application. */
function createUpdater(url: string, version: string, httpKey: string) {
  const dir = mkdtempSync(join(tmpdir(), 'latchkey-updater-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, 'app-update.yml'), 'updaterCacheDirName: acme\n');
  const paths = { appUpdateConfigPath: join(dir, 'app-update.yml'), userDataPath: dir, baseCachePath: dir };
  const app = { version, name: 'Acme', isPackaged: true, ...paths, whenReady: async () => undefined, onQuit: () => undefined };
  const updater = new NsisUpdater(null, app);
  updater.httpExecutor = new NodeExecutor();
  updater._testOnlyOptions = { platform: 'win32', isUseDifferentialDownload: false };
  Object.assign(updater, { autoDownload: false, logger: null, disableDifferentialDownload: true });
  updater.requestHeaders = { authorization: `Bearer ${httpKey}` };
  updater.setFeedURL({ provider: 'generic', url });
  // Without a listener, an error that the test expects would end the process.
  updater.on('error', () => undefined);
  return updater;
}

it('electron-updater finds, downloads and verifies a release, and rejects other bytes', async () => {
  const { session: api } = await signUp();
  const applicationId = await createApplication(api);
  const content = 'MZ the new version'.repeat(10_000);
  const fileId = (await upload(api, applicationId, 'setup.exe', content)).data.id;
  const artifacts = [{ fileId, name: 'Acme Setup 1.4.0.exe', platform: 'windows', arch: 'x64', kind: 'exe' }];
  const { data } = await api.post(
    '/api/v1/panel/releases',
    { version: '1.4.0', notes: 'Faster: "yes"', artifacts },
    { applicationId },
  );
  expect(outcome(await api.post(`/api/v1/panel/releases/${data.id}/publish`))).toBe('200');
  const { httpKey } = (await api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
  const url = `${api.baseUrl}/api/v1/updates/${applicationId}/stable`;

  const updater = createUpdater(url, '1.3.0', httpKey);
  const { isUpdateAvailable, updateInfo } = await updater.checkForUpdates();
  expect([isUpdateAvailable, updateInfo.version, updateInfo.releaseNotes]).toEqual([true, '1.4.0', 'Faster: "yes"']);
  const [path] = await updater.downloadUpdate();
  expect(readFileSync(path, 'utf8')).toBe(content);

  expect((await createUpdater(url, '1.4.0', httpKey).checkForUpdates()).isUpdateAvailable).toBe(false);
  await expect(createUpdater(url, '1.3.0', 'no-key').checkForUpdates()).rejects.toThrow(/401/);

  const tampered = createUpdater(url, '1.3.0', httpKey);
  const found = await tampered.checkForUpdates();
  found.updateInfo.files[0].sha512 = Buffer.alloc(64).toString('base64');
  await expect(tampered.downloadUpdate()).rejects.toThrow(/sha512/);
});
