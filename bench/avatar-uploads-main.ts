import { readFileSync } from 'node:fs';
import type { Caller } from './account.ts';
import { uploadAvatar } from './avatar-requests.ts';

/** Uploads avatars of some accounts, one after the other of each, until it is told to stop: in a process of its own, which holds up no measuring. */
interface Uploads {
  readonly baseUrl: string;
  readonly callers: readonly Caller[];
  readonly photoPath: string;
}

let going = true;
process.once('message', async ({ baseUrl, callers, photoPath }: Uploads) => {
  process.once('message', () => {
    going = false;
  });
  const photo = readFileSync(photoPath);
  const uploads = callers.map(async (caller) => {
    while (going) await uploadAvatar(baseUrl, caller, photo);
  });
  process.send?.('begun');
  await Promise.all(uploads);
  process.disconnect();
});
