import { useEffect, useState } from 'react';
import { toast } from '../toast/toasts.ts';
import { Button, IconButton } from './button.tsx';

const SHOWN_MS = 2_000;

interface CopyButtonProps {
  readonly value: string;
  /** "Copy request id". */
  readonly label: string;
  /** Text on the button; without it, the button is an icon. */
  readonly text?: string | undefined;
}

/** Copies a text, also one that is not shown. */
export function CopyButton({ value, label, text }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    try {
      await copyText(value);
      setCopied(true);
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
