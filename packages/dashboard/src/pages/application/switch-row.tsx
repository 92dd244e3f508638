import { useId } from 'react';
import { Switch } from '../../components/switch.tsx';
import styles from './overview.module.css';

interface SwitchRowProps {
  readonly title: string;
  readonly hint: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}

/** A setting that is on or off. */
export function SwitchRow({ title, hint, checked, onChange }: SwitchRowProps) {
  const id = useId();
  return (
    <div className={styles.row}>
      <div className={styles.text}>
        <p id={id} className={styles.name}>
          {title}
        </p>
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      </div>
      <Switch labelledBy={id} describedBy={`${id}-hint`} checked={checked} onChange={onChange} />
    </div>
  );
}
