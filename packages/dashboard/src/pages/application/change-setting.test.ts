import { LatchkeyError } from '@latchkey/client';
import { beforeEach, expect, it, vi } from 'vitest';
import { changeSetting } from './change-setting.ts';

const { readSettings, update } = vi.hoisted(() => ({ readSettings: vi.fn(), update: vi.fn() }));
vi.mock('../../api/client.ts', () => ({ latchkey: { applications: { readSettings, update } } }));

const change = { applicationId: 'app', field: 'version', seen: '1.0', value: '1.1' } as const;
const changedMeanwhile = new LatchkeyError('Changed', { code: 'changed_meanwhile', status: 412 });

beforeEach(() => vi.resetAllMocks());

it('tries again where others changed another setting between the read and the change', async () => {
  readSettings.mockResolvedValueOnce({ settings: { version: '1.0' }, etag: 'a' });
  readSettings.mockResolvedValueOnce({ settings: { version: '1.0' }, etag: 'b' });
  update.mockRejectedValueOnce(changedMeanwhile).mockResolvedValueOnce(undefined);
  await changeSetting(change);
  expect(update.mock.lastCall).toEqual(['app', { version: '1.1' }, { ifMatch: 'b' }]);
});

it('rejects where others changed the setting itself', async () => {
  readSettings.mockResolvedValueOnce({ settings: { version: '1.0' }, etag: 'a' });
  readSettings.mockResolvedValueOnce({ settings: { version: '2.0' }, etag: 'b' });
  update.mockRejectedValueOnce(changedMeanwhile);
  await expect(changeSetting(change)).rejects.toMatchObject({ code: 'changed_meanwhile' });
  expect(update).toHaveBeenCalledTimes(1);
});
