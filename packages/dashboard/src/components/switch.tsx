import { Switch as BaseSwitch } from '@base-ui/react/switch';
import styles from './switch.module.css';

interface SwitchProps {
  /** Id of the element that names it. */
  readonly labelledBy: string;
  readonly describedBy?: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly disabled?: boolean;
}

export function Switch({ labelledBy, describedBy, checked, onChange, disabled = false }: SwitchProps) {
  return (
    <BaseSwitch.Root
      className={styles.switch}
      aria-labelledby={labelledBy}
      aria-describedby={describedBy}
      checked={checked}
      onCheckedChange={onChange}
      disabled={disabled}
    >
      <BaseSwitch.Thumb className={styles.thumb} />
    </BaseSwitch.Root>
  );
}
