import { useEffect, useEffectEvent, useReducer } from 'react';

/** Renders again at an interval in milliseconds, for a text that depends on the time. */
export function useInterval(ms: number, isRunning = true): void {
  const [, render] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(render, ms);
    return () => clearInterval(timer);
  }, [ms, isRunning]);
}

/** Whole seconds until a time in milliseconds since 1970; 0 once it has passed. */
export function useSecondsUntil(at: number | undefined): number {
  const seconds = at === undefined ? 0 : Math.max(0, Math.ceil((at - Date.now()) / 1_000));
  useInterval(1_000, seconds > 0);
  return seconds;
}

/**
 * Calls a function at a time in milliseconds since 1970.
 * @returns the whole seconds until then
 */
export function useAttemptAt(at: number | undefined, attempt: () => unknown): number {
  const run = useEffectEvent(attempt);
  useEffect(() => {
    if (at === undefined) return;
    const timer = setTimeout(() => void run(), Math.max(0, at - Date.now()));
    return () => clearTimeout(timer);
  }, [at]);
  return useSecondsUntil(at);
}

export function formatSeconds(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
