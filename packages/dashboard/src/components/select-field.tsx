import type { ComponentProps, ReactNode } from 'react';
import { Field } from './text-field.tsx';

interface SelectFieldProps extends Pick<ComponentProps<'select'>, 'value' | 'defaultValue' | 'onChange'> {
  readonly name: string;
  readonly label: string;
  readonly hint?: ReactNode;
  /** The options. */
  readonly children: ReactNode;
}

/** The select of the browser: it works with every keyboard and every phone. */
export function SelectField({ name, label, hint, children, ...select }: SelectFieldProps) {
  return (
    <Field name={name} label={label} hint={hint}>
      {({ onInput, ...attributes }) => (
        <select {...attributes} {...select}>
          {children}
        </select>
      )}
    </Field>
  );
}
