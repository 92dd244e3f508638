import type { EventLog } from '../event/event-log.ts';
import type { Frame } from '../frame/frame.ts';
import type { Hub, HubApplication } from './hub.ts';

/** The last event that a client knows. Without an epoch, the current one is assumed. */
export interface LastEvent {
  readonly epoch: string | undefined;
  readonly sequence: number;
}

/** The position of a new socket in the events of its application. */
export interface Start {
  /** True if the client receives all that it missed. */
  readonly resumed: boolean;
  readonly position: number;
  /** The first frames to send, where they were read from the event log. */
  readonly frames: readonly Frame[];
}

export interface ResumeRequest {
  readonly requestId: string;
  /** Latest start of a read of the event log, as `performance.now()` counts. */
  readonly deadline: number;
}

/**
 * Resumes after the client's last event where it has the current epoch and the event log still has
 * all later events (`EVENTS_RETAINED` in `limits.ts` of the contract); else at the snapshot.
 */
export async function planStart(
  { hub, log }: { readonly hub: Hub | undefined; readonly log: Pick<EventLog, 'readForClient'> },
  { applicationId, lastSequence, epoch }: HubApplication,
  lastEvent: LastEvent | undefined,
  { requestId, deadline }: ResumeRequest,
): Promise<Start> {
  const atSnapshot = { resumed: false, position: lastSequence, frames: [] };
  if (!lastEvent || lastEvent.sequence > lastSequence || (lastEvent.epoch ?? epoch) !== epoch) return atSnapshot;
  const { sequence: position } = lastEvent;
  const resumed = { resumed: true, position, frames: [] };
  if (position === lastSequence || hub?.frameAfter(position)?.epoch === epoch) return resumed;
  const frames = await log.readForClient({ applicationId, afterSequence: position, lastSequence, requestId, deadline });
  const [first] = frames;
  return first?.sequence === position + 1 && first.epoch === epoch ? { ...resumed, frames } : atSnapshot;
}
