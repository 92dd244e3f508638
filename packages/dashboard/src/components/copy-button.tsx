import { type ReactNode, useState } from 'react';
import { toast } from '../toast/toasts.ts';
import { Button, IconButton } from './button.tsx';
import styles from './table.module.css';

const SHOWN_MS = 2_000;

interface CopyButtonProps {
  readonly value: string;
  readonly label: string;
  /** Text on the button; without it, the button is an icon. */
  readonly text?: string | undefined;
}

/** Copies a text, also one that is not shown. */
export function CopyButton({ value, label, text }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await copyText(value);
      setCopied(true);
      setTimeout(() => setCopied(false), SHOWN_MS);
    } catch {
      toast.failure('Copying is not allowed here', 'Select the text and copy it with the keyboard.');
    }
  };
  const icon = isCopied ? 'check' : 'copy';
  return (
    <>
      {text === undefined ? (
        <IconButton small label={label} icon={icon} onClick={copy} />
      ) : (
        <Button small icon={icon} onClick={copy} aria-label={label}>
          {text}
        </Button>
      )}
      <span className="visually-hidden" role="status">
        {isCopied ? 'Copied' : ''}
      </span>
    </>
  );
}

/** Browsers offer the clipboard on https and localhost only; the older way works everywhere. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error('copying was rejected');
}

/** A text to copy, such as code or a URL. */
export function CopyFigure({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <figure>
      <figcaption className="between strong">
        {name} <CopyButton value={text} label={`Copy ${name}`} />
      </figcaption>
      <pre className="well">{text}</pre>
    </figure>
  );
}

/** An id, shortened in the middle, to copy as a whole. */
export function ShortId({ id, label = 'Copy id' }: { readonly id: string; readonly label?: string }) {
  return (
    <span className={styles.id}>
      <code title={id}>{id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id}</code>
      <CopyButton value={id} label={label} />
    </span>
  );
}

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
      <code className="well grow">{isShown ? value : `${value.slice(0, prefixLength)}••••••••••••`}</code>
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
