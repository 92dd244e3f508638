import { LatchkeyError } from '@latchkey/client';
import { type ComponentProps, createContext, type ReactNode, useContext, useEffect, useMemo, useRef } from 'react';
import { Button } from './button.tsx';
import styles from './form.module.css';
import { ErrorNotice } from './notice.tsx';

type Messages = Readonly<Record<string, string>>;

const FieldErrors = createContext<Messages>({});

/** The message for the input of this name, if the last submission was rejected because of it. */
export const useFieldError = (name: string) => useContext(FieldErrors)[name];

interface FormProps extends Pick<ComponentProps<'form'>, 'onInput' | 'children'> {
  readonly onSubmit: (values: FormData) => void;
  /**
   * Error of the last submission. Its `details` appear at the fields with their names (`body.name`
   * at `name`), everything else above the buttons.
   */
  readonly error?: unknown;
  /** Messages by field for other errors than `details`, such as a name that is taken. */
  readonly messages?: Messages | undefined;
  /** Text of the button that submits. */
  readonly action: ReactNode;
  readonly pending: boolean;
  /** Differences from a primary button. */
  readonly button?: Partial<ComponentProps<typeof Button>>;
  /** Buttons before the one that submits. */
  readonly others?: ReactNode;
  /** Without it, there is no button to cancel. */
  readonly onCancel?: (() => void) | undefined;
  readonly cancel?: string;
}

/** A form that shows errors in their places, and focuses the first wrong field. Enter submits. */
export function Form({ onSubmit, error, messages, children, onInput, ...props }: FormProps) {
  const { action, pending, button, others, onCancel, cancel = 'Cancel' } = props;
  const ref = useRef<HTMLFormElement>(null);
  const errors = useMemo(() => ({ ...toMessages(error), ...messages }), [error, messages]);
  useEffect(() => {
    if (Object.keys(errors).length > 0) ref.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [errors]);
  // Details without a field would be lost.
  const isShown = Object.keys(errors).length > 0 && !Object.keys(errors).some((name) => !ref.current?.elements.namedItem(name));
  return (
    <form
      ref={ref}
      noValidate
      className={styles.form}
      onInput={onInput}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(new FormData(event.currentTarget));
      }}
    >
      <FieldErrors value={errors}>{children}</FieldErrors>
      {Boolean(error) && !isShown && <ErrorNotice error={error} />}
      <div className={styles.actions}>
        {others}
        {onCancel && <Button onClick={onCancel}>{cancel}</Button>}
        <Button type="submit" variant="primary" pending={pending} {...button}>
          {action}
        </Button>
      </div>
    </form>
  );
}

function toMessages(error: unknown): Messages {
  if (!(error instanceof LatchkeyError)) return {};
  const details = error.details.filter(({ path }) => path.startsWith('body.'));
  return Object.fromEntries(details.map(({ path, message }) => [path.slice('body.'.length).split('.')[0], sentence(message)]));
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
