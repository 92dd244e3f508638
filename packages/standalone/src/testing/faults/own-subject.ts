import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import { expect, onTestFinished } from 'vitest';
import { type OwnInstance, startOwnInstance } from '../own-instance.ts';
import { type Account, addApplication, createAccount } from './account.ts';
import { checkBytes, findDisagreements, lookAtHoldings, type Row, type StoreView, viewOfDisk } from './holdings.ts';
import { isLost, type Outcome } from './outcome.ts';
import { sendUpload, type UploadRequest } from './upload-request.ts';

/** An instance of a test's own, with an account and an application, and a look behind it. */
export interface OwnSubject {
  readonly instance: OwnInstance;
  readonly databaseUrl: string;
  readonly account: Account;
  readonly applicationId: string;
  readonly store: StoreView;
  /** An upload to the application, of so many bytes. */
  upload(fileName: string, byteSize: number, options?: Partial<UploadRequest> & { readonly port?: number }): Promise<Outcome>;
  /** Resolves when the bytes of an upload are being received. */
  receiving(): Promise<unknown>;
  /** Rows, once they and the objects agree and nothing else is left. */
  agreed(): Promise<readonly Row[]>;
}

export interface OwnSubjectOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Stands in for a new database. */
  readonly databaseUrl?: string;
  readonly store?: StoreView;
}

/** How long a sweeper with a period of a second may take, in milliseconds, on a machine with other work to do. */
const AGREED_MS_MAX = 15_000;

const SETTINGS = { UPLOAD_LEASE_SECONDS: '1', SWEEP_INTERVAL_SECONDS: '1' };

/** Starts one in the shape under test; its caller stops it. */
export async function startOwnSubject(options: OwnSubjectOptions = {}): Promise<OwnSubject> {
  const database = options.databaseUrl === undefined ? await createEmptyTestDatabase() : undefined;
  const databaseUrl = options.databaseUrl ?? database?.url ?? '';
  const own = await startOwnInstance({ databaseUrl, env: { ...SETTINGS, ...options.env } });
  const instance = {
    ...own,
    stop: async () => {
      await own.stop();
      await database?.drop();
    },
  };
  const account = await createAccount(own.port, 'owner', 1);
  await addApplication(account, own.port);
  const applicationId = account.ledger.applications[0]?.id ?? '';
  const store = options.store ?? viewOfDisk(options.env?.OBJECTS_DIR ?? own.objectsDir);
  return {
    instance,
    databaseUrl,
    account,
    applicationId,
    store,
    upload(fileName, byteSize, { port = own.port, ...rest } = {}) {
      const { authorization } = account;
      return sendUpload(port, { authorization, applicationId, fileName, bytes: bytesOf(byteSize), chunked: false, ...rest });
    },
    receiving: () => eventually(() => isReceiving(databaseUrl, applicationId)),
    agreed: () => withClient(databaseUrl, (client) => eventually(() => agree(client, store), { timeoutMs: AGREED_MS_MAX })),
  };
}

/** The same for one test, which stops it when it has ended. */
export async function startSubjectForTest(options: OwnSubjectOptions = {}): Promise<OwnSubject> {
  const subject = await startOwnSubject(options);
  onTestFinished(() => subject.instance.stop(), 60_000);
  return subject;
}

/** Bytes that differ from one another, so that none can stand in the place of another. */
export function bytesOf(byteSize: number): Buffer {
  const bytes = Buffer.alloc(byteSize);
  for (let i = 0; i < byteSize; i += 4)
    bytes.writeUInt32LE(Math.imul(i, 2_654_435_761) >>> 0, Math.min(i, Math.max(0, byteSize - 4)));
  return bytes;
}

/** Status and code of an outcome, or how it was lost. */
export function tell(outcome: Outcome): string {
  return isLost(outcome) ? 'lost' : `${outcome.status} ${outcome.code}`.trim();
}

/** Tries until the lease of what was cut before is free, which must not take long; answers how it ended. */
export async function untilFree(send: () => Promise<Outcome>): Promise<Outcome> {
  return eventually(async () => {
    const outcome = await send();
    expect(tell(outcome)).not.toBe('429 rate_limit_reached');
    return outcome;
  });
}

async function isReceiving(databaseUrl: string, applicationId: string): Promise<boolean> {
  const text = `select 1 from files.upload_intent where application_id = $1 and state = 'receiving'`;
  const { rowCount } = await withClient(databaseUrl, (client) => client.query(text, [applicationId]));
  return rowCount === 1;
}

async function agree(client: Parameters<typeof lookAtHoldings>[0], store: StoreView): Promise<readonly Row[]> {
  const holdings = await lookAtHoldings(client, store);
  expect(findDisagreements(holdings)).toEqual([]);
  await checkBytes(holdings.rows, store);
  return holdings.rows;
}
