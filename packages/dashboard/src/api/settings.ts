const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="latchkey-${name}"]`)?.content ?? '';

/**
 * Path that a proxy puts before all paths; `/` without one. The gateway writes it into the page.
 */
export const basePath = meta('base') || '/';

/** URL of the service as this browser reaches it, without a slash at its end. */
export const serverUrl = location.origin + basePath.replace(/\/$/, '');

/** URL of live events as this browser reaches it; undefined lets the client derive it. */
export const realtimeUrl = meta('realtime') || undefined;

/**
 * True if the browser sent a session cookie with the page: without one, nothing needs to be asked.
 */
export const hadSessionCookie = meta('session') === 'yes';
