import { useLayoutEffect } from 'react';

/** Title of the browser's tab while a page is shown: Preact moves no `title` to the head. */
export function Title({ children }: { readonly children: string }) {
  useLayoutEffect(() => {
    document.title = `${children} · Latchkey`;
  }, [children]);
  return null;
}
