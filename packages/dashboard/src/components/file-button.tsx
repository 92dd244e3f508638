import { type ComponentProps, cloneElement, type ReactElement, useRef } from 'react';

interface FileButtonProps extends Pick<ComponentProps<'input'>, 'accept' | 'multiple'> {
  readonly button: ReactElement<ComponentProps<'button'>>;
  /** Of the input, for screen readers. */
  readonly label: string;
  readonly onFiles: (files: readonly File[]) => void;
}

export function FileButton({ button, label, onFiles, ...attributes }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={label}
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // The same files may be chosen again.
          currentTarget.value = '';
        }}
        {...attributes}
      />
      {cloneElement(button, { onClick: () => input.current?.click() })}
    </>
  );
}
