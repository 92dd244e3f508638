import { LatchkeyError } from '@latchkey/client';
import { PASSWORD } from '@latchkey/contract/lengths';
import { useMutation } from '@tanstack/react-query';
import {
  type ComponentProps,
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import { Button } from './button.tsx';
import styles from './form.module.css';
import { ErrorNotice } from './notice.tsx';

type Messages = Readonly<Record<string, string>>;

/** Rejection of inputs by the page, with a message for each by its name. */
export class InputError extends Error {
  readonly messages: Messages;

  constructor(messages: Messages) {
    super('Some inputs are not valid');
    this.messages = messages;
  }
}

/** Shows errors of this code at an input: for `catch` of a call. */
export const showAt = (name: string, code: string, message: string) => (error: unknown) => {
  throw error instanceof LatchkeyError && error.code === code ? new InputError({ [name]: message }) : error;
};

const FieldErrors = createContext<Messages>({});

/** The message for the input of this name, if the last submission was rejected because of it. */
export const useFieldError = (name: string) => useContext(FieldErrors)[name];

interface FormLayout {
  /** Text of the button that submits. */
  readonly action: ReactNode;
  /** Differences from a primary button. */
  readonly button?: Partial<ComponentProps<typeof Button>>;
  /** Buttons before the one that submits. */
  readonly others?: ReactNode;
  /** Without it, there is no button to cancel. */
  readonly onCancel?: (() => void) | undefined;
  readonly cancel?: string;
  readonly children: ReactNode;
}

interface FormProps<Result> extends FormLayout {
  /**
   * The change. The messages of an {@link InputError} and the `details` of an error appear at the
   * fields with their names (`body.name` at `name`), everything else above the buttons.
   */
  readonly onSubmit: (values: FormData) => Result | Promise<Result>;
  /** Called once the page shows the change. */
  readonly onDone?: (result: Result, values: FormData) => unknown;
  /** True for a page without a session: its errors open no sign-in, and its button is wide. */
  readonly isEntry?: boolean;
}

/** A form that shows errors in their places, and focuses the first wrong field. Enter submits. */
export function Form<Result>({ onSubmit, onDone, isEntry = false, ...layout }: FormProps<Result>) {
  const submission = useMutation({
    mutationFn: async (values: FormData) => onSubmit(values),
    onSuccess: (result, values) => onDone?.(result, values),
    meta: { opensSignIn: !isEntry },
  });
  return <MutationForm submission={submission} {...(isEntry && { button: { wide: true } })} {...layout} />;
}

interface MutationFormProps extends FormLayout {
  readonly submission: {
    readonly error: unknown;
    readonly isPending: boolean;
    readonly mutate: (values: FormData) => void;
    readonly reset: () => void;
  };
  /** True if the page shows the error itself. */
  readonly hidesError?: boolean;
}

/** A {@link Form} for a mutation whose state the page shows too, such as a conflict. */
export function MutationForm({ submission, hidesError, action, button, others, onCancel, ...layout }: MutationFormProps) {
  const { cancel = 'Cancel', children } = layout;
  const ref = useRef<HTMLFormElement>(null);
  const { isPending, mutate, reset } = submission;
  const error = hidesError ? null : submission.error;
  const errors = useMemo(() => toMessages(error), [error]);
  const names = Object.keys(errors);
  useEffect(() => {
    if (Object.keys(errors).length > 0) ref.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [errors]);
  // Details without a field would be lost.
  const isShown = names.length > 0 && names.every((name) => ref.current?.elements.namedItem(name));
  return (
    <form
      ref={ref}
      noValidate
      className="stack"
      onInput={() => error instanceof InputError && reset()}
      onSubmit={(event) => {
        event.preventDefault();
        mutate(new FormData(event.currentTarget));
      }}
    >
      <FieldErrors value={errors}>{children}</FieldErrors>
      {Boolean(error) && !isShown && <ErrorNotice error={error} />}
      <div className="cluster end">
        {others}
        {onCancel && <Button onClick={onCancel}>{cancel}</Button>}
        <Button type="submit" variant="primary" pending={isPending} {...button}>
          {action}
        </Button>
      </div>
    </form>
  );
}

function toMessages(error: unknown): Messages {
  if (error instanceof InputError) return error.messages;
  if (!(error instanceof LatchkeyError)) return {};
  const details = error.details.filter(({ path }) => path.startsWith('body.'));
  return Object.fromEntries(details.map(({ path, message }) => [path.slice('body.'.length).split('.')[0], sentence(message)]));
}

/** The rule as a sentence, without the characters that no keyboard enters. */
const sentence = (rule: string) =>
  `${rule.charAt(0).toUpperCase()}${rule.slice(1)}.`.replace(/ without (NUL|control characters for this field)\.$/, '.');

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
function Field({
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
      <div className={hideLabel ? 'visually-hidden' : 'between strong'}>
        <label htmlFor={id}>{label}</label>
        {aside}
      </div>
      {children(attributes)}
      {note !== undefined && (
        <p id={`${id}-note`} className={message === undefined ? 'muted small' : styles.error}>
          {note}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps extends FieldProps, Omit<ComponentProps<'input'>, keyof InputAttributes | 'children'> {
  /** Number of visible lines; without it, the text has one line. */
  readonly rows?: number | undefined;
}

/**
 * Focuses an input as it appears. Preact leaves `autoFocus` to the browser, which heeds it once a
 * page.
 */
const focusOnMount = (input: HTMLInputElement | null) => input?.focus();

export function TextField({ name, label, hint, aside, hideLabel, error, autoFocus, ...input }: TextFieldProps) {
  const Input = (input.rows === undefined ? 'input' : 'textarea') as 'input';
  return (
    <Field name={name} label={label} hint={hint} aside={aside} hideLabel={hideLabel} error={error}>
      {(attributes) => (
        <Input autoComplete="off" spellCheck={false} ref={autoFocus ? focusOnMount : undefined} {...input} {...attributes} />
      )}
    </Field>
  );
}

/** Six digits of the authenticator app, or a recovery code. */
export const CodeField = (props: Partial<Pick<TextFieldProps, 'label' | 'hint' | 'autoFocus'>>) => (
  <TextField
    name="code"
    label="Two-factor code"
    hint="Six digits from your authenticator app, or a recovery code."
    autoComplete="one-time-code"
    autoCapitalize="none"
    {...props}
  />
);

/** A password to choose. */
export const NewPasswordField = (props: Partial<Pick<TextFieldProps, 'name' | 'label' | 'hint' | 'required'>>) => (
  <TextField
    name="newPassword"
    label="New password"
    type="password"
    hint={`At least ${PASSWORD.min} characters.`}
    autoComplete="new-password"
    required
    {...props}
  />
);

interface SelectFieldProps extends Pick<ComponentProps<'select'>, 'value' | 'defaultValue' | 'onChange'> {
  readonly name: string;
  readonly label: string;
  readonly hint?: ReactNode;
  readonly options?: ReadonlyArray<readonly [value: string | number, label: string]>;
  /** Further options. */
  readonly children?: ReactNode;
}

/** The select of the browser: it works with every keyboard and every phone. */
export function SelectField({ name, label, hint, options = [], children, ...select }: SelectFieldProps) {
  return (
    <Field name={name} label={label} hint={hint}>
      {({ onInput, ...attributes }) => (
        <select {...attributes} {...select}>
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
          {children}
        </select>
      )}
    </Field>
  );
}
