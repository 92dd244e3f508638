import { type Application, type ConnectionState, LatchkeyError, type LiveEvent } from '@latchkey/client';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useReducer, useRef, useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { settingsQuery } from '../../../api/queries.ts';

/** Events that stay on the page, the newest ones. */
const EVENTS_MAX = 200;

/** The events of the last 24 hours, then those that a licensed copy gets while the page is open. */
export function useLiveEvents({ id, applicationApiKeys: { socketKey } }: Application) {
  const queryClient = useQueryClient();
  const [events, setEvents] = useState<readonly LiveEvent[]>([]);
  const [state, setState] = useState<ConnectionState | { readonly state: 'ended' }>({ state: 'connecting' });
  const [error, setError] = useState<LatchkeyError>();
  /** The last event that the page has. */
  const position = useRef<string>(undefined);
  const [attempt, retry] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const controller = new AbortController();
    const batch = batchByFrame((add) => {
      setEvents((earlier) => [...add.toReversed(), ...earlier].slice(0, EVENTS_MAX));
      const isDeleted = add.some(({ type }) => type === 'latchkey.application.deleted');
      if (!isDeleted) void queryClient.invalidateQueries({ queryKey: settingsQuery(id).queryKey });
    });
    const { signal } = controller;
    const listen = async () => {
      setError(undefined);
      if (position.current === undefined) {
        // The connection resumes after the oldest ones. Without them, it begins with what comes.
        const oldest = await latchkey.applications.pullEvents(id, { signal }).catch(() => undefined);
        oldest?.events.forEach(batch.push);
        position.current = oldest?.next;
      }
      for await (const event of latchkey.events({ socketKey, signal, onState: setState, lastEventId: position.current })) {
        if (event.sequence !== undefined) position.current = `${event.epoch}:${event.sequence}`;
        batch.push(event);
      }
    };
    listen()
      .catch((error: unknown) => {
        if (!(error instanceof LatchkeyError)) throw error;
        // Where another tab rotated the key, the new one connects again once it was read.
        setError(error);
      })
      .finally(() => !controller.signal.aborted && setState({ state: 'ended' }));
    return () => {
      controller.abort();
      batch.cancel();
    };
  }, [id, socketKey, attempt, queryClient]);
  return { events, state, error, retry, clear: () => setEvents([]) };
}

/** Collects what comes within a frame: thousands of events are one change of the page. */
function batchByFrame(flush: (events: readonly LiveEvent[]) => void) {
  let events: LiveEvent[] = [];
  let frame: number | undefined;
  return {
    push(event: LiveEvent) {
      events.push(event);
      if (events.length > EVENTS_MAX) events.shift();
      frame ??= requestAnimationFrame(() => {
        frame = undefined;
        flush(events);
        events = [];
      });
    },
    cancel: () => frame !== undefined && cancelAnimationFrame(frame),
  };
}
