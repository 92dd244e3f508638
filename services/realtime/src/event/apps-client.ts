import { timestampDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService, ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type Frame, frameOf, type Snapshot } from '../frame/frame.ts';

/** The application behind a socket key. */
export interface KeyHolder extends Snapshot {
  /** Tells the key from earlier and later ones. */
  readonly keyFingerprint: string;
}

/** What the clients of an application should have received. */
export interface LiveState {
  readonly lastSequence: number;
  readonly keyFingerprint: string;
}

/** The calls of the apps service that this service makes. */
export interface AppsClient {
  /** Throws a ConnectError with `runtime_key_invalid` for a key that opens nothing. */
  lookUp(socketKey: string, requestId: string): Promise<KeyHolder>;
  /**
   * Up to {@link PAGE_EVENTS} events after a sequence; they begin later where the log was trimmed.
   *
   * @param requestId the client's request that they are read for
   */
  listFrames(applicationId: string, afterSequence: number, requestId?: string): Promise<Frame[]>;
  /** States by application id; deleted applications have none. */
  getLiveStates(applicationIds: readonly string[]): Promise<Map<string, LiveState>>;
}

/** Events per page. Making frames of them blocks the event loop for half a millisecond. */
export const PAGE_EVENTS = 100;

const TIMEOUT_MS = 3_500;

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
