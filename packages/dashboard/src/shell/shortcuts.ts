import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { NAVIGATION } from './navigation.ts';

/** Longest time between `g` and the key of a page, in milliseconds. */
const SEQUENCE_MS = 1_500;

export const SHORTCUTS: ReadonlyArray<readonly [keys: string, effect: string]> = [
  ['Ctrl K', 'Find a page, an application or an action'],
  ['?', 'Show this list'],
  ['/', 'Search on this page'],
  ...NAVIGATION.map(({ key, label }) => [`g ${key}`, `Go to ${label}`] as const),
  ['Esc', 'Close a dialog or a menu'],
];

/** Listens for the shortcuts; all but `Ctrl K` are ignored while typing and in dialogs. */
export function useShortcuts(open: (what: 'palette' | 'shortcuts') => void): void {
  const navigate = useNavigate();
  const startedAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        open('palette');
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const page = event.timeStamp - startedAt.current < SEQUENCE_MS && NAVIGATION.find(({ key }) => key === event.key);
      startedAt.current = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (page) navigate({ to: page.to });
      else if (event.key === '?') open('shortcuts');
      else if (event.key === '/') focusSearch(event);
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [navigate, open]);
}

function isBusy(target: EventTarget | null): boolean {
  if (document.querySelector('[role="dialog"]:not([aria-modal="false"]), [role="menu"]')) return true;
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusSearch(event: KeyboardEvent): void {
  const search = document.querySelector<HTMLInputElement>('main input[type="search"]');
  if (!search) return;
  event.preventDefault();
  search.focus();
}
