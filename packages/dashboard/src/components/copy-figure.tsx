import { CopyButton } from './copy-button.tsx';
import styles from './copy-figure.module.css';

/** A text to copy, such as code or a URL. */
export function CopyFigure({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <figure className={styles.figure}>
      <figcaption className="between strong">
        {name} <CopyButton value={text} label={`Copy ${name}`} />
      </figcaption>
      <pre>{text}</pre>
    </figure>
  );
}
