import { type ReactNode, useState } from 'react';
import { Button } from './button.tsx';
import { CopyButton } from './copy-button.tsx';
import styles from './secret-field.module.css';

interface SecretFieldProps {
  /** "socket key". */
  readonly name: string;
  readonly value: string;
  /** Number of characters that stay visible, to recognise the secret. */
  readonly prefixLength?: number | undefined;
  /** Further buttons, such as to rotate. */
  readonly children?: ReactNode;
}

/** A secret: masked, shown on demand, copied without showing. */
export function SecretField({ name, value, prefixLength = 0, children }: SecretFieldProps) {
  // Another value is masked again.
  const [shown, setShown] = useState<string>();
  const isShown = shown === value;
  return (
    <div className="cluster">
      <code className={styles.value}>{isShown ? value : `${value.slice(0, prefixLength)}••••••••••••`}</code>
      <Button
        small
        icon={isShown ? 'eyeOff' : 'eye'}
        aria-label={`${isShown ? 'Hide' : 'Reveal'} ${name}`}
        onClick={() => setShown(isShown ? undefined : value)}
      >
        {isShown ? 'Hide' : 'Reveal'}
      </Button>
      <CopyButton value={value} label={`Copy ${name}`} text="Copy" />
      {children}
    </div>
  );
}
