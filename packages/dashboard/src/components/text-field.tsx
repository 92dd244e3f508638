import { type ComponentProps, type ReactNode, useId, useState } from 'react';
import { classes } from '../styles/classes.ts';
import styles from './form.module.css';
import { useFieldError } from './form.tsx';

interface FieldProps {
  /** Name in the body of the request: errors in `details` find the field by it. */
  readonly name: string;
  readonly label: string;
  /** Below the input: what is allowed, or what happens. */
  readonly hint?: ReactNode;
  /** Next to the label, such as a link. */
  readonly aside?: ReactNode;
  /** True if only screen readers get the label, as the placeholder says it. */
  readonly hideLabel?: boolean | undefined;
  /** Error that the page found itself. */
  readonly error?: string | undefined;
}

type InputAttributes = Pick<
  ComponentProps<'input'>,
  'id' | 'name' | 'className' | 'aria-invalid' | 'aria-describedby' | 'onInput'
>;

/** Label, hint and error around any input. The error goes when the input changes. */
export function Field({
  name,
  label,
  hint,
  aside,
  hideLabel,
  error,
  children,
}: FieldProps & { readonly children: (input: InputAttributes) => ReactNode }) {
  const id = useId();
  const rejected = useFieldError(name);
  const [changed, setChanged] = useState<string>();
  const message = error ?? (rejected === changed ? undefined : rejected);
  // The same rejection of another submission is shown again.
  if (rejected === undefined && changed !== undefined) setChanged(undefined);
  // The error says the rule that the hint says.
  const note = message ?? hint;
  const attributes: InputAttributes = {
    id,
    name,
    className: styles.input,
    'aria-invalid': message !== undefined,
    ...(note !== undefined && { 'aria-describedby': `${id}-note` }),
    onInput: () => setChanged(rejected),
  };
  return (
    <div className={styles.field}>
      <div className={hideLabel ? 'visually-hidden' : styles.label}>
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {children(attributes)}
      {note !== undefined && (
        <p id={`${id}-note`} className={message === undefined ? styles.hint : styles.error}>
          {note}
        </p>
      )}
    </div>
  );
}

type TextFieldProps = FieldProps & Omit<ComponentProps<'input'>, keyof InputAttributes | 'children'>;

/**
 * Focuses an input as it appears. Preact leaves `autoFocus` to the browser, which heeds it once a
 * page.
 */
const focusOnMount = (input: HTMLInputElement | null) => input?.focus();

export function TextField({ name, label, hint, aside, hideLabel, error, autoFocus, ...input }: TextFieldProps) {
  return (
    <Field name={name} label={label} hint={hint} aside={aside} hideLabel={hideLabel} error={error}>
      {(attributes) => (
        <input
          type="text"
          autoComplete="off"
          spellCheck={false}
          ref={autoFocus ? focusOnMount : undefined}
          {...input}
          {...attributes}
        />
      )}
    </Field>
  );
}

type CodeFieldProps = Omit<FieldProps, 'name' | 'label'> & {
  readonly label?: string;
  readonly name?: string;
  readonly autoFocus?: boolean;
};

/** Six digits of the authenticator app, or a recovery code. */
export function CodeField({ name = 'code', label = 'Code', autoFocus, ...field }: CodeFieldProps) {
  return (
    <Field name={name} label={label} {...field}>
      {(attributes) => (
        <input
          type="text"
          autoComplete="one-time-code"
          autoCapitalize="none"
          spellCheck={false}
          ref={autoFocus ? focusOnMount : undefined}
          {...attributes}
          className={classes(styles.input, styles.code)}
        />
      )}
    </Field>
  );
}
