import { useId } from 'react';
import { Row } from '../../components/row.tsx';
import styles from './switch-row.module.css';

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
    <Row id={id} name={title} hint={hint}>
      <input
        type="checkbox"
        role="switch"
        className={styles.switch}
        aria-labelledby={id}
        aria-describedby={`${id}-hint`}
        aria-checked={checked}
        checked={checked}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </Row>
  );
}
