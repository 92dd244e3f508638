/** True once a call found that the session has ended. Outside React, as calls report it. */
let hasEnded = false;
const listeners = new Set<() => void>();

function set(value: boolean): void {
  if (hasEnded === value) return;
  hasEnded = value;
  for (const listener of listeners) listener();
}

/** True while the page goes to the sign-in: nothing asks before what is not saved is lost. */
let isLeaving = false;
export const isLeavingForSignIn = () => isLeaving;
export const beginLeaving = () => {
  isLeaving = true;
};

export const reportSessionEnd = () => set(true);
export const forgetSessionEnd = () => set(false);
export const hasSessionEnded = () => hasEnded;

export function subscribeToSessionEnd(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
