import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReceivedMail } from '@latchkey/identity/testing/mail-server';
import { eventually } from '@latchkey/testkit/eventually';
import { inject } from 'vitest';
import '../instance/shared-instance.ts';

/** The mail with a link, to a page if given, that the shared instance sent to an address. */
export function waitForMail(address: string, page = ''): Promise<ReceivedMail> {
  const { mailDir } = inject('latchkeyInstance');
  const read = async () => {
    const texts = (await readdir(mailDir)).map((name) => readFile(join(mailDir, name), 'utf8'));
    // A mail that is being written is not complete.
    const mails = (await Promise.all(texts)).filter((text) => text.endsWith('}')).map((text) => JSON.parse(text) as ReceivedMail);
    return mails.find(({ to, token, link }) => to === address && token !== '' && link.includes(page)) ?? false;
  };
  return eventually(read, { timeoutMs: 20_000, intervalMs: 50 }) as Promise<ReceivedMail>;
}
