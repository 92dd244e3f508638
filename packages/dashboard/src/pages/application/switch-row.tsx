import { useId } from 'react';
import { Row } from '../../components/page.tsx';
import { useAction } from '../../toast/use-action.ts';
import styles from './switch-row.module.css';

interface SwitchRowProps {
  readonly title: string;
  readonly hint: string;
  /** The saved value. */
  readonly value: boolean;
  readonly change: (wanted: boolean) => Promise<unknown>;
}

/** A setting that is on or off. */
export function SwitchRow({ title, hint, value, change }: SwitchRowProps) {
  const id = useId();
  const setting = useAction(change, `“${title}” was not changed`);
  // Shown before the service has confirmed it.
  const checked = setting.isPending ? setting.variables : value;
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
        onChange={(event) => setting.mutate(event.currentTarget.checked)}
      />
    </Row>
  );
}
