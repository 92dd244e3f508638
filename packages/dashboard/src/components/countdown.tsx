import { useEffect, useEffectEvent, useState } from 'react';

const secondsUntil = (at: number | undefined) => (at === undefined ? 0 : Math.max(0, Math.ceil((at - Date.now()) / 1_000)));

/** Whole seconds until a time in milliseconds since 1970; 0 once it has passed. */
export function useSecondsUntil(at: number | undefined): number {
  const [seconds, setSeconds] = useState(() => secondsUntil(at));
  useEffect(() => {
    setSeconds(secondsUntil(at));
    if (secondsUntil(at) === 0) return;
    const timer = setInterval(() => {
      const left = secondsUntil(at);
      setSeconds(left);
      if (left === 0) clearInterval(timer);
    }, 1_000);
    return () => clearInterval(timer);
  }, [at]);
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
