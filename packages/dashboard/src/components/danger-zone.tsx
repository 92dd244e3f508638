import type { ComponentProps } from 'react';
import { Button } from './button.tsx';
import { ConfirmButton } from './confirm-dialog.tsx';
import { Section } from './page.tsx';
import { Row } from './row.tsx';

interface DangerZoneProps
  extends Pick<ComponentProps<typeof ConfirmButton>, 'title' | 'fields' | 'onConfirm' | 'done' | 'children'> {
  /** "application". */
  readonly thing: string;
  /** Name to type. */
  readonly name: string;
  readonly hint: string;
}

/** The deletion of what the page shows, after its name was typed. */
export function DangerZone({ thing, name, hint, ...dialog }: DangerZoneProps) {
  const action = `Delete ${thing}`;
  const button = (
    <Button variant="dangerOutline" icon="trash">
      {action}
    </Button>
  );
  return (
    <Section title="Danger zone" dangerous>
      <Row name={`Delete this ${thing}`} hint={hint}>
        <ConfirmButton button={button} action={action} danger typeName={name} {...dialog} />
      </Row>
    </Section>
  );
}
