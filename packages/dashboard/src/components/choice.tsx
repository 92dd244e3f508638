import { type ComponentProps, type ReactNode, useId } from 'react';
import styles from './choice.module.css';
import form from './form.module.css';
import { useFieldError } from './form.tsx';

interface ChoiceProps extends Omit<ComponentProps<'input'>, 'type' | 'className' | 'children'> {
  readonly type?: 'checkbox' | 'radio';
  readonly label: ReactNode;
  /** Consequence of this choice. */
  readonly hint?: ReactNode;
}

/** A checkbox or a radio button; its label is a part of what can be clicked. */
export function Choice({ type = 'checkbox', label, hint, ...input }: ChoiceProps) {
  const id = useId();
  return (
    <label className={styles.choice}>
      <input
        {...input}
        type={type}
        aria-labelledby={`${id}-label`}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
      />
      <span id={`${id}-label`} dir="auto">
        {label}
      </span>
      {hint !== undefined && (
        <span id={`${id}-hint`} className={`${styles.hint} muted small`}>
          {hint}
        </span>
      )}
    </label>
  );
}

interface ChoiceSetProps {
  /** Name of its inputs: errors in `details` find it by that. */
  readonly name: string;
  readonly legend: string;
  readonly error?: string | undefined;
  /** @param isInvalid whether the last submission was rejected because of it */
  readonly children: (isInvalid: boolean) => ReactNode;
}

/** Choices that belong together, with their error. */
export function ChoiceSet({ name, legend, error, children }: ChoiceSetProps) {
  const rejected = useFieldError(name);
  const message = error ?? rejected;
  return (
    <fieldset className={`${styles.set} stack close`}>
      <legend className="strong">{legend}</legend>
      {children(message !== undefined)}
      {message !== undefined && (
        <p className={form.error} role="alert">
          {message}
        </p>
      )}
    </fieldset>
  );
}
