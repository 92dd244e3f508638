import { timestampDate } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { REQUEST_ID_HEADER } from '@latchkey/kit/rpc/route';
import { ApplicationService, ApplicationStatus, type LiveState } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type Frame, frameOf, type Snapshot } from '../frame/frame.ts';

/** The application behind a socket key. */
export interface KeyHolder extends Snapshot {
  readonly accountId: string;
  /** Differs for each key that the application has or had. */
  readonly keyFingerprint: string;
}

export type AppsClient = ReturnType<typeof createAppsClient>;

/** Events per page. Making frames of them blocks the event loop for half a millisecond. */
export const PAGE_EVENTS = 100;

const callFor = (requestId?: string) => ({
  timeoutMs: DEADLINES_MS.apps,
  ...(requestId !== undefined && { headers: { [REQUEST_ID_HEADER]: requestId } }),
});

export function createAppsClient(transport: Transport) {
  const client = createClient(ApplicationService, transport);
  return {
    /** Throws a ConnectError with `runtime_key_invalid` for a key that opens nothing. */
    async lookUp(socketKey: string, requestId: string): Promise<KeyHolder> {
      const found = await client.lookUpApplication({ key: { case: 'socketKey', value: socketKey } }, callFor(requestId));
      const { applicationId, accountId, name, settings, lastSequence, keyFingerprint, epoch } = found;
      const status = settings?.status === ApplicationStatus.PAUSED ? 'paused' : 'online';
      const version = settings?.version ?? '';
      const snapshot = { applicationId, name, status, version, lastSequence: Number(lastSequence), epoch } as const;
      return { ...snapshot, accountId, keyFingerprint };
    },
    /** A page of events after a sequence; they begin later where the log was trimmed. */
    async listFrames(applicationId: string, afterSequence: number, requestId?: string): Promise<Frame[]> {
      const request = { applicationId, afterSequence: BigInt(afterSequence), pageSize: PAGE_EVENTS };
      const { epoch, events } = await client.listApplicationEvents(request, callFor(requestId));
      return events.flatMap(({ id, sequence, createdAt, event }) =>
        createdAt && event
          ? [frameOf(applicationId, { id, epoch, sequence: Number(sequence), createdAt: timestampDate(createdAt), event })]
          : [],
      );
    },
    /** Reports the clients that applications have now on all nodes. */
    async recordClients(clients: ReadonlyArray<readonly [applicationId: string, clients: number]>): Promise<void> {
      await client.recordUsage(
        { counts: clients.map(([applicationId, count]) => ({ applicationId, clients: count })) },
        callFor(),
      );
    },
    /** State that the clients of applications should have received, by application. */
    async getLiveStates(applicationIds: readonly string[]): Promise<Map<string, LiveState>> {
      const { states } = await client.batchGetLiveStates({ applicationIds: [...applicationIds] }, callFor());
      return new Map(states.map((state) => [state.applicationId, state]));
    },
  };
}
