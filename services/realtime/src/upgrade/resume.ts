import type { IncomingMessage } from 'node:http';
import type { Frame } from '../frame/frame.ts';

/** Where a new socket begins. */
export interface Beginning {
  /** Whether all follows that the client has missed. */
  readonly resumed: boolean;
  /** The sequence after which it begins. */
  readonly position: number;
  /** What follows first, where that has been read from the log. */
  readonly frames: readonly Frame[];
}

/** How a beginning finds out what is held. */
export interface EventSource {
  /** The frame after a sequence where it is at hand. */
  frameAfter(sequence: number): Frame | undefined;
  readFrames(afterSequence: number): Promise<readonly Frame[]>;
}

const SEQUENCE = /^(0|[1-9]\d{0,14})$/;

/**
 * The sequence after which a client wants to go on, by `Last-Event-ID` or, where it can't set that, `lastEventId` in the query. Undefined where it
 * names none, or what can't be one.
 */
export function readLastEventId(req: IncomingMessage): number | undefined {
  const headers = req.headersDistinct['last-event-id'] ?? [];
  const [, query = ''] = (req.url ?? '').split('?', 2);
  const [text = '', ...others] = headers.length > 0 ? headers : new URLSearchParams(query).getAll('lastEventId');
  return others.length === 0 && SEQUENCE.test(text) ? Number(text) : undefined;
}

/**
 * Where a client begins that knows all events up to one: right after it if all that follow are held, else at the present, which the snapshot stands
 * for (decisions 10).
 *
 * @param lastSequence the newest event of the application when it was looked up
 */
export async function planBeginning(
  lastEventId: number | undefined,
  lastSequence: number,
  source: EventSource,
): Promise<Beginning> {
  const present = { resumed: false, position: lastSequence, frames: [] };
  if (lastEventId === undefined || lastEventId > lastSequence) return present;
  if (lastEventId === lastSequence) return { ...present, resumed: true };
  const resumed = { resumed: true, position: lastEventId, frames: [] };
  if (source.frameAfter(lastEventId)) return resumed;
  const frames = await source.readFrames(lastEventId);
  return frames[0]?.sequence === lastEventId + 1 ? { ...resumed, frames } : present;
}
