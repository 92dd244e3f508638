import type { Application } from '@latchkey/client';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { toast } from '../../toast/toasts.ts';
import { changeSetting } from './change-setting.ts';

interface StatusButtonProps {
  readonly application: Application;
  readonly status: 'online' | 'paused';
}

/** Pauses after a confirmation, as live clients hear of it; resumes without one. */
export function StatusButton({ application: { id, name }, status }: StatusButtonProps) {
  const [isAsking, setAsking] = useState(false);
  const change = (seen: 'online' | 'paused', value: 'online' | 'paused') =>
    changeSetting({ applicationId: id, field: 'status', seen, value });
  const resume = useMutation({
    mutationFn: () => change('paused', 'online'),
    onSuccess: () => toast.success('Application resumed', name),
    onError: (error) => toast.error('The application was not resumed', error),
  });
  const isPaused = status === 'paused';
  return (
    <>
      {/* One button, which so keeps the focus. */}
      <Button
        variant={isPaused ? 'primary' : 'secondary'}
        pending={resume.isPending}
        onClick={() => (isPaused ? resume.mutate() : setAsking(true))}
      >
        {isPaused ? 'Resume' : 'Pause'}
      </Button>
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Pause ${name}?`}
        action="Pause application"
        done={['Application paused', name]}
        onConfirm={() => change('online', 'paused')}
      >
        Connected clients are notified that the application is paused. They stay connected, and hear when you resume it.
      </ConfirmDialog>
    </>
  );
}
