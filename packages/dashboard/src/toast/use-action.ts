import { useMutation } from '@tanstack/react-query';
import { useId } from 'react';
import { toast } from './toasts.ts';

/**
 * A change that one press makes, without a form. Its result is a toast.
 * @param failed "The session was not ended"
 * @param done title and description; without it, the page shows the success
 */
export const useAction = <Input = void>(
  run: (input: Input) => Promise<unknown>,
  failed: string,
  done?: readonly [title: string, description?: string],
) =>
  useMutation({
    mutationFn: run,
    // A second press waits for the first: concurrent changes may end in any order.
    scope: { id: useId() },
    onSuccess: () => done && toast.success(...done),
    onError: (error) => toast.error(failed, error),
  });
