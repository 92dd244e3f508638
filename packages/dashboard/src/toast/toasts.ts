import { Toast } from '@base-ui/react/toast';
import { explainError } from '../error/explain-error.ts';

const UNDO_MS = 10_000;

export const toastManager = Toast.createToastManager();

const region = Promise.withResolvers<void>();
export const showToasts = region.resolve;

/** The region is loaded with the first toast. */
const first = Promise.withResolvers<void>();
export const firstToast = first.promise;

type ToastOptions = Parameters<typeof toastManager.add>[0];
let lastId = 0;

/** Toasts wait for their region, which is loaded after the page. */
function add(options: ToastOptions): string {
  first.resolve();
  lastId += 1;
  const id = `toast-${lastId}`;
  void region.promise.then(() => toastManager.add({ ...options, id }));
  return id;
}

/** Results of actions, for some seconds; failures stay until they are closed. */
export const toast = {
  success: (title: string, description?: string) => add({ title, description, type: 'success' }),
  /** A result that can be taken back, for a little longer. */
  undoable: (title: string, onUndo: () => void) => {
    const undo = () => {
      toastManager.close(id);
      onUndo();
    };
    const id = add({ title, type: 'success', timeout: UNDO_MS, actionProps: { children: 'Undo', onClick: undo } });
  },
  failure: (title: string, description?: string) => add({ title, description, type: 'failure', timeout: 0, priority: 'high' }),
  /** @param what the action that failed: "The application was not paused" */
  error(what: string, error: unknown) {
    const { title, advice, requestId } = explainError(error);
    const request = requestId === undefined ? '' : ` Request ${requestId}.`;
    return toast.failure(what, `${title}. ${advice}${request}`.trim());
  },
};
