import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { Button } from '../../../components/button.tsx';
import { ConfirmDialog } from '../../../components/confirm-dialog.tsx';
import { Form } from '../../../components/form.tsx';
import { Section } from '../../../components/page.tsx';
import { EmptyState, QueryView } from '../../../components/states.tsx';
import { toast } from '../../../toast/toasts.ts';
import { levelsQuery } from '../queries.ts';
import { findProblems, newLevel, toDraft, toNames } from './draft.ts';
import { LevelList } from './level-list.tsx';

const route = getRouteApi('/signed-in/applications/$applicationId/levels');

export function Levels() {
  const { applicationId } = route.useParams();
  const query = useQuery(levelsQuery(applicationId));
  return <QueryView query={query}>{(names) => <Editor applicationId={applicationId} saved={names} />}</QueryView>;
}

const isSame = (a: readonly string[], b: readonly string[]) => JSON.stringify(a) === JSON.stringify(b);

interface EditorProps {
  readonly applicationId: string;
  readonly saved: readonly string[];
}

/** Edits a draft of all levels, which is saved as one change. */
function Editor({ applicationId, saved }: EditorProps) {
  const [levels, setLevels] = useState(() => toDraft(saved));
  const [edited, setEdited] = useState(saved);
  // Levels that were saved elsewhere replace a draft without changes.
  if (edited !== saved) {
    setEdited(saved);
    if (isSame(toNames(levels), edited)) setLevels(toDraft(saved));
  }
  const [added, setAdded] = useState<number>();
  const save = useSave(applicationId, saved);
  const isChanged = !isSame(toNames(levels), saved);
  const problems = findProblems(levels);
  const add = () => {
    const level = newLevel('');
    setLevels([...levels, level]);
    setAdded(level.key);
  };
  const discard = () => setLevels(toDraft(saved));
  if (levels.length === 0 && !isChanged) return <NoLevels onAdd={add} />;
  return (
    <Section
      title="License levels"
      description="What a license allows, from the first to the last. Drag a level to move it, or use the arrow keys on its handle."
    >
      <Form
        onSubmit={() => problems.size === 0 && levels.length > 0 && isChanged && save.mutate(toNames(levels))}
        error={save.error}
        actions={
          <>
            <Button icon="plus" onClick={add}>
              Add level
            </Button>
            <Button disabled={!isChanged} onClick={discard}>
              Discard changes
            </Button>
            <Button
              type="submit"
              variant="primary"
              disabled={!isChanged || problems.size > 0 || levels.length === 0}
              pending={save.isPending}
            >
              Save levels
            </Button>
          </>
        }
      >
        <LevelList levels={levels} problems={problems} focused={added} onChange={setLevels} />
        {levels.length === 0 && <p role="status">An application keeps at least one level: add one, or discard the changes.</p>}
      </Form>
      <LeaveDialog isChanged={isChanged && !save.isPending} />
    </Section>
  );
}

/** Saves the names; the result can be undone for some seconds. */
function useSave(applicationId: string, before: readonly string[]) {
  const queryClient = useQueryClient();
  const { queryKey } = levelsQuery(applicationId);
  const set = async (names: readonly string[]) => {
    await latchkey.levels.set(applicationId, names);
    queryClient.setQueryData(queryKey, [...names]);
  };
  const restore = (names: readonly string[]) => {
    set(names).catch((error: unknown) => toast.error('The levels were not restored', error));
  };
  return useMutation({
    mutationFn: async (names: readonly string[]) => {
      await set(names);
      return before;
    },
    onSuccess(previous) {
      // The interface has no way back to no levels.
      if (previous.length === 0) toast.success('Levels saved');
      else toast.undoable('Levels saved', () => restore(previous));
    },
  });
}

function LeaveDialog({ isChanged }: { readonly isChanged: boolean }) {
  const blocker = useBlocker({ shouldBlockFn: () => isChanged, enableBeforeUnload: () => isChanged, withResolver: true });
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

function NoLevels({ onAdd }: { readonly onAdd: () => void }) {
  const action = (
    <Button variant="primary" icon="plus" onClick={onAdd}>
      Add level
    </Button>
  );
  return (
    <EmptyState icon="key" title="No license levels yet" action={action}>
      A level says what a license allows, such as “basic” and “pro”. Your application decides what each level means.
    </EmptyState>
  );
}
