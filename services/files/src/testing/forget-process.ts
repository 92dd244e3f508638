import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/logger';
import type { FilesDatabase } from '../db/schema.ts';
import { forgetApplication } from '../storage/application/deleted-application.ts';

/** Forgets an application, and is killed after so many commits that left objects to remove. */
const [url = '', applicationId = '', accountId = '', commits = ''] = process.argv.slice(2);
const logger = createLogger('doomed', 'silent');
const { db } = createDatabase<FilesDatabase>({ url, schema: 'files', logger });
let seen = 0;
await forgetApplication({ db, logger, clock: () => new Date() }, { applicationId, accountId }, () => {
  seen += 1;
  if (seen === Number(commits)) process.kill(process.pid, 'SIGKILL');
});
