import { withoutInvisible } from '@latchkey/contract/invisible';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { nameQuery } from '../../../api/queries.ts';
import { Button } from '../../../components/button.tsx';
import form from '../../../components/form.module.css';
import { useApplicationId } from '../use-application-id.ts';
import { findNameProblem, NAME_RULE } from './file-name.ts';
import styles from './files.module.css';

const PAUSE_MS = 250;

/** The value as it was when it last stayed the same for a moment. */
function usePaused(value: string): string {
  const [paused, setPaused] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return paused;
}

/** Result of the check of a name, which runs while typing pauses. */
function useNameCheck(text: string, current: string | undefined) {
  const applicationId = useApplicationId();
  const name = withoutInvisible(text);
  const problem = findNameProblem(name);
  const isPaused = usePaused(name) === name;
  const isAsked = isPaused && problem === undefined && name !== current;
  const { data: isFree } = useQuery({ ...nameQuery(applicationId, name), enabled: isAsked });
  if (problem !== undefined) return { problem };
  if (name !== current && isFree === false) return { problem: 'A file of this application has this name.' };
  return { isFree: name !== current && isFree === true };
}

interface NameFormProps {
  readonly label: string;
  readonly name: string;
  /** The present name of the file, which is valid. */
  readonly current?: string;
  readonly action: string;
  readonly isPending?: boolean;
  /** Reason why the last name was rejected. */
  readonly error?: ReactNode;
  readonly takesFocus?: boolean;
  readonly onSubmit: (name: string) => void;
  readonly onCancel: () => void;
}

/** Input for the name of a file, which says while typing whether a file can get it. */
export function NameForm({ label, name, current, action, takesFocus, ...props }: NameFormProps) {
  const { isPending, error, onSubmit, onCancel } = props;
  const [text, setText] = useState(name);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { problem, isFree } = useNameCheck(text, current);
  useEffect(() => {
    if (takesFocus) input.current?.select();
  }, [takesFocus]);
  return (
    <form
      className="stack close"
      onSubmit={(event) => {
        event.preventDefault();
        if (problem === undefined) onSubmit(withoutInvisible(text));
        else input.current?.focus();
      }}
    >
      <div className={`${styles.nameLine} cluster`}>
        <input
          ref={input}
          className={form.input}
          aria-label={label}
          aria-describedby={`${id}-hint`}
          aria-invalid={problem !== undefined}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Escape' && onCancel()}
        />
        <Button type="submit" variant="primary" pending={isPending ?? false}>
          {action}
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
      <p id={`${id}-hint`} className="muted small" role="status">
        <NameHint problem={problem} isFree={isFree} />
      </p>
      {error}
    </form>
  );
}

function NameHint({ problem, isFree }: { readonly problem?: string | undefined; readonly isFree?: boolean | undefined }) {
  if (problem !== undefined) return <span className={styles.failed}>{problem}</span>;
  return isFree ? <span className={styles.stored}>This name is free.</span> : NAME_RULE;
}
