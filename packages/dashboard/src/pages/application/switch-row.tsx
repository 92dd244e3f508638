import { useId } from 'react';
import { Row } from '../../components/row.tsx';
import { Switch } from '../../components/switch.tsx';

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
      <Switch labelledBy={id} describedBy={`${id}-hint`} checked={checked} onChange={onChange} />
    </Row>
  );
}
