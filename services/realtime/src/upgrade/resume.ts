import type { Frame } from '../frame/frame.ts';

/** Where a new socket starts in the events of its application. */
export interface Start {
  /** Whether the client receives all that it missed. */
  readonly resumed: boolean;
  /** The sequence of the last event that the client has. */
  readonly position: number;
  /** The first frames to send, where they were read from the event log. */
  readonly frames: readonly Frame[];
}

export interface EventSource {
  /** The frame after a sequence, where it is in the replay buffer. */
  frameAfter(sequence: number): Frame | undefined;
  readFrames(afterSequence: number): Promise<readonly Frame[]>;
}

/**
 * Resumes after `lastEventId` where all later events are held, else at the snapshot (decisions 10).
 *
 * @param lastSequence the newest event of the application when it was looked up
 */
export async function planStart(lastEventId: number | undefined, lastSequence: number, source: EventSource): Promise<Start> {
  const atSnapshot = { resumed: false, position: lastSequence, frames: [] };
  if (lastEventId === undefined || lastEventId > lastSequence) return atSnapshot;
  if (lastEventId === lastSequence) return { ...atSnapshot, resumed: true };
  const resumed = { resumed: true, position: lastEventId, frames: [] };
  if (source.frameAfter(lastEventId)) return resumed;
  const frames = await source.readFrames(lastEventId);
  return frames[0]?.sequence === lastEventId + 1 ? { ...resumed, frames } : atSnapshot;
}
