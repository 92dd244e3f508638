import { useEffect, useState } from 'react';
import form from './form.module.css';
import { Icon } from './icon.tsx';
import styles from './search-field.module.css';

const PAUSE_MS = 200;

interface SearchFieldProps {
  /** "Search applications". */
  readonly label: string;
  /** From the URL. */
  readonly value: string;
  /** Called when typing pauses. */
  readonly onSearch: (text: string) => void;
  readonly delayMs?: number;
}

export function SearchField({ label, value, onSearch, delayMs = PAUSE_MS }: SearchFieldProps) {
  const [text, setText] = useState(value);
  // Back and forward change the URL.
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onSearch(text), delayMs);
    return () => clearTimeout(timer);
  }, [text, value, onSearch, delayMs]);
  return (
    <div className={styles.search}>
      <Icon name="search" />
      <input
        type="search"
        className={form.input}
        aria-label={label}
        placeholder={label}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
    </div>
  );
}
