import { useEffect, useEffectEvent, useReducer } from 'react';

const secondsUntil = (at: number | undefined) => (at === undefined ? 0 : Math.max(0, Math.ceil((at - Date.now()) / 1_000)));

/** Whole seconds until a time in milliseconds since 1970; 0 once it has passed. */
export function useSecondsUntil(at: number | undefined): number {
  const [, render] = useReducer((count: number) => count + 1, 0);
  const seconds = secondsUntil(at);
  const isRunning = seconds > 0;
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(render, 1_000);
    return () => clearInterval(timer);
  }, [isRunning]);
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
