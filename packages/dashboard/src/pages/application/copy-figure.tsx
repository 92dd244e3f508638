import { CopyButton } from '../../components/copy-button.tsx';
import styles from './overview.module.css';

/** A text to copy, such as code or a URL. */
export function CopyFigure({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <figure className={styles.snippet}>
      <figcaption>
        {name} <CopyButton value={text} label={`Copy ${name}`} />
      </figcaption>
      <pre>{text}</pre>
    </figure>
  );
}
