import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { levelsQuery } from '../../../api/queries.ts';
import { Button, CreateButton } from '../../../components/button.tsx';
import { ConfirmDialog } from '../../../components/confirm-dialog.tsx';
import { MutationForm } from '../../../components/form.tsx';
import { Section } from '../../../components/page.tsx';
import { EmptyState, QueryView } from '../../../components/states.tsx';
import { Versions } from '../../../components/versions.tsx';
import { isChangedMeanwhile } from '../../../error/explain-error.ts';
import { isLeavingForSignIn } from '../../../session/session-end.ts';
import { toast } from '../../../toast/toasts.ts';
import { useAction } from '../../../toast/use-action.ts';
import { useApplicationId } from '../use-application-id.ts';
import { findProblems, newLevel, toDraft, toNames } from './draft.ts';
import { LevelList } from './level-list.tsx';

export function Levels() {
  return <QueryView query={levelsQuery(useApplicationId())}>{(saved) => <Editor saved={saved} />}</QueryView>;
}

const isSame = (a: readonly string[], b: readonly string[]) => JSON.stringify(a) === JSON.stringify(b);

/** Levels of the service, with their entity tag. */
type Saved = Awaited<ReturnType<typeof latchkey.levels.read>>;

/** Edits a draft of all levels, which is saved as one change. */
function Editor({ saved }: { readonly saved: Saved }) {
  const applicationId = useApplicationId();
  const [levels, setLevels] = useState(() => toDraft(saved.levels));
  // The levels that the draft began with: others may have been saved since then.
  const [base, setBase] = useState(saved);
  const names = toNames(levels);
  if (base !== saved && [base.levels, saved.levels].some((known) => isSame(names, known))) {
    setBase(saved);
    if (!isSame(names, saved.levels)) setLevels(toDraft(saved.levels));
  }
  const [added, setAdded] = useState<number>();
  const queryClient = useQueryClient();
  const saveOver = ({ levels, etag }: Saved) => latchkey.levels.set(applicationId, levels, { ifMatch: etag });
  const restore = useAction(saveOver, 'The levels were not restored');
  const save = useMutation({
    mutationFn: async (_values: FormData): Promise<string[]> => {
      const before = replaces ? saved : base;
      await latchkey.levels.set(applicationId, names, { ifMatch: before.etag });
      return before.levels;
    },
    onSuccess(before) {
      const { etag } = queryClient.getQueryData(levelsQuery(applicationId).queryKey) ?? saved;
      // The interface has no way back to no levels.
      if (before.length === 0) toast.success('Levels saved');
      else toast.undoable('Levels saved', () => restore.mutate({ levels: before, etag }));
    },
  });
  const isConflict = !isSame(base.levels, saved.levels) && !save.isPending;
  // Only a second press replaces what others saved, as their change may arrive with the first one.
  const replaces = isConflict && isChangedMeanwhile(save.error);
  const isChanged = !isSame(names, base.levels);
  const problems = findProblems(names);
  const add = () => {
    const level = newLevel('');
    setLevels([...levels, level]);
    setAdded(level.key);
  };
  const discard = () => {
    save.reset();
    setBase(saved);
    setLevels(toDraft(saved.levels));
  };
  if (levels.length === 0 && !isChanged)
    return (
      <EmptyState icon="key" title="No license levels yet" action={<CreateButton onClick={add}>Add level</CreateButton>}>
        A level says what a license allows, such as “basic” and “pro”. Your application decides what each level means.
      </EmptyState>
    );
  return (
    <Section
      title="License levels"
      description="What a license allows, from the first to the last. Drag a level to move it, or use the arrow keys on its handle."
    >
      <MutationForm
        submission={save}
        hidesError={isChangedMeanwhile(save.error)}
        action={replaces ? 'Replace them with mine' : 'Save levels'}
        button={{ disabled: !isChanged || problems.some(Boolean) || levels.length === 0 }}
        others={
          <>
            <Button icon="plus" onClick={add}>
              Add level
            </Button>
            <Button disabled={!isChanged} onClick={discard}>
              {isConflict ? 'Use the saved levels' : 'Discard changes'}
            </Button>
          </>
        }
      >
        <LevelList levels={levels} problems={problems} focused={added} onChange={setLevels} />
        {levels.length === 0 && <p role="status">An application keeps at least one level: add one, or discard the changes.</p>}
        {isConflict && (
          <Versions title="The levels were changed meanwhile" saved={[saved.levels.join(', ')]} own={[names.join(', ')]} />
        )}
      </MutationForm>
      <LeaveDialog isChanged={isChanged && !save.isPending} />
    </Section>
  );
}

function LeaveDialog({ isChanged }: { readonly isChanged: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: () => isChanged,
    enableBeforeUnload: () => isChanged && !isLeavingForSignIn(),
    withResolver: true,
  });
  return (
    <ConfirmDialog
      open={blocker.status === 'blocked'}
      onClose={() => blocker.reset?.()}
      title="Leave without saving?"
      action="Leave"
      danger
      onConfirm={async () => blocker.proceed?.()}
    >
      The levels have changes that are not saved.
    </ConfirmDialog>
  );
}
