import { timestampDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService, ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type Frame, frameOf, type Snapshot } from '../frame/frame.ts';

/** The application behind a socket key. */
export interface KeyHolder extends Snapshot {
  /** Tells the key from those before it and after it. */
  readonly keyFingerprint: string;
}

/** What the clients of an application should have heard. */
export interface LiveState {
  readonly lastSequence: number;
  readonly keyFingerprint: string;
}

/** What this service asks the apps service. */
export interface AppsClient {
  /** Throws a ConnectError with `runtime_key_invalid` for a key that opens nothing. */
  lookUp(socketKey: string, requestId: string): Promise<KeyHolder>;
  /**
   * Up to {@link PAGE_EVENTS} events of an application after a sequence, in order; begins later where the log no longer holds the next.
   *
   * @param requestId the request that they are read for, where it is somebody's
   */
  listFrames(applicationId: string, afterSequence: number, requestId?: string): Promise<Frame[]>;
  /** The states of those of some applications that exist, by id. */
  getLiveStates(applicationIds: readonly string[]): Promise<Map<string, LiveState>>;
}

/** Most events read at once. Few, as nobody else is served while they are made into frames: it takes half a millisecond. */
export const PAGE_EVENTS = 100;

/** Enough to go round a process that hangs. */
const TIMEOUT_MS = 3_500;

/** Asks over the given transport, for 3.5 s at most. */
export function createAppsClient(transport: Transport): AppsClient {
  const client = createClient(ApplicationService, transport);
  const options = { timeoutMs: TIMEOUT_MS };
  return {
    async lookUp(socketKey, requestId) {
      const request = { key: { case: 'socketKey', value: socketKey } } as const;
      const headers = { [REQUEST_ID_HEADER]: requestId };
      const found = await client.lookUpApplication(request, { ...options, headers });
      return {
        applicationId: found.applicationId,
        name: found.name,
        status: found.settings?.status === ApplicationStatus.PAUSED ? 'paused' : 'online',
        version: found.settings?.version ?? '',
        lastSequence: Number(found.lastSequence),
        keyFingerprint: found.keyFingerprint,
      };
    },
    async listFrames(applicationId, afterSequence, requestId) {
      const request = { applicationId, afterSequence: BigInt(afterSequence), pageSize: PAGE_EVENTS };
      const { events } = await client.listApplicationEvents(request, {
        ...options,
        ...(requestId !== undefined && { headers: { [REQUEST_ID_HEADER]: requestId } }),
      });
      return events.flatMap(({ id, sequence, createdAt, event }) =>
        createdAt && event
          ? [frameOf(applicationId, { id, sequence: Number(sequence), createdAt: timestampDate(createdAt), event })]
          : [],
      );
    },
    async getLiveStates(applicationIds) {
      const { states } = await client.batchGetLiveStates({ applicationIds: [...applicationIds] }, options);
      return new Map(
        states.map(({ applicationId, lastSequence, socketKeyFingerprint }) => [
          applicationId,
          { lastSequence: Number(lastSequence), keyFingerprint: socketKeyFingerprint },
        ]),
      );
    },
  };
}
