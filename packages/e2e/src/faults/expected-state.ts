import { Api } from '../client/api.ts';
import { createApplication, createKey, type Owner, signUp } from '../client/caller.ts';
import { readSocketKey } from '../client/live.ts';
import { Listener } from './listener.ts';

type State = 'there' | 'gone' | 'in doubt';

/** A file as its sender knows it. */
export interface Entry {
  readonly applicationId: string;
  /** Names that it may have: several after a rename without a response. */
  names: string[];
  /** Known once the upload succeeded, or the file was found. */
  id: string | undefined;
  readonly byteSize: number;
  readonly checksum: string;
  state: State;
  /** True while a request about it is running. */
  busy: boolean;
}

export interface KnownApplication {
  readonly id: string;
  state: State;
}

/** An account and what its clients know from their responses. */
export interface Account {
  readonly name: string;
  readonly owner: Owner;
  readonly key: Api;
  readonly entries: Entry[];
  readonly applications: KnownApplication[];
  /** An application that stays, whose version changes and is listened to. */
  readonly liveId: string;
  readonly listeners: readonly Listener[];
  /** Versions by when their change succeeded. */
  readonly versions: Map<string, number>;
  /** Uploads without a response, to be sent again. */
  readonly unanswered: Array<{ readonly entry: Entry; readonly bytes: Buffer }>;
  hasAvatar: boolean;
  serial: number;
}

export interface Addresses {
  readonly baseUrl: string;
  readonly realtimeUrl: string;
}

export async function createAccount(target: Addresses, name: string, listeners: number): Promise<Account> {
  const owner = await signUp(new Api(target.baseUrl));
  const { api: key } = await createKey(owner);
  const [liveId, first] = [await createApplication(key), await createApplication(key)];
  const socketKey = await readSocketKey(key, liveId);
  return {
    name,
    owner,
    key,
    entries: [],
    applications: [{ id: first, state: 'there' }],
    liveId,
    listeners: Array.from({ length: listeners }, () => new Listener(target.realtimeUrl, socketKey)),
    versions: new Map(),
    unanswered: [],
    hasAvatar: false,
    serial: 0,
  };
}

/** A name that the account has never used. */
export function newName(account: Account, prefix: string): string {
  account.serial += 1;
  return `${prefix}-${account.serial}`;
}

export const isUsable = ({ applications }: Account, applicationId: string): boolean =>
  applications.some(({ id, state }) => id === applicationId && state === 'there');

export const usableApplications = ({ applications }: Account): KnownApplication[] =>
  applications.filter(({ state }) => state === 'there');

/** Files that exist for certain and that no request is about. */
export const idleEntries = (account: Account): Entry[] =>
  account.entries.filter(({ state, busy, applicationId }) => state === 'there' && !busy && isUsable(account, applicationId));
