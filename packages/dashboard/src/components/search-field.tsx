import { useEffect, useEffectEvent, useRef, useState } from 'react';
import form from './form.module.css';
import { Icon } from './icon.tsx';
import styles from './search-field.module.css';

const PAUSE_MS = 200;

interface SearchFieldProps {
  readonly label: string;
  /** From the URL. */
  readonly value: string;
  /** Called when typing pauses. */
  readonly onSearch: (text: string) => void;
}

export function SearchField({ label, value, onSearch }: SearchFieldProps) {
  const [text, setText] = useState(value);
  const searched = useRef(value);
  useEffect(() => {
    // Back and forward change the URL; the own change arrives while typing goes on.
    if (value !== searched.current) setText(value);
    searched.current = value;
  }, [value]);
  const search = useEffectEvent(() => {
    searched.current = text;
    onSearch(text);
  });
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => search(), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <div className={`${styles.search} line grow`}>
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
