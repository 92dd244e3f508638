import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog as BaseDialog } from '@base-ui/react/dialog';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Fragment, useMemo, useRef } from 'react';
import { applicationsQuery } from '../api/queries.ts';
import dialog from '../components/dialog.module.css';
import { Dialog } from '../components/dialog.tsx';
import { Icon, type IconName } from '../components/icon.tsx';
import { signOut } from '../session/sign-out.ts';
import { NAVIGATION } from './navigation.ts';
import styles from './palette.module.css';
import { SHORTCUTS } from './shortcuts.ts';
import { chooseTheme, THEMES } from './theme.ts';

interface Command {
  readonly id: string;
  readonly label: string;
  readonly kind: 'Page' | 'Application' | 'Action';
  readonly icon: IconName;
  readonly run: () => unknown;
}

/** Finds pages, applications and actions by their names. */
export function Palette({ onClose, onShortcuts }: { readonly onClose: () => void; readonly onShortcuts: () => void }) {
  const commands = useCommands(onShortcuts);
  const hasLeft = useRef(false);
  const run = (command: Command) => {
    hasLeft.current = command.kind !== 'Action';
    onClose();
    command.run();
  };
  return (
    <BaseDialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={dialog.backdrop} />
        {/* A new page takes the focus. */}
        <BaseDialog.Popup className={`${styles.popup} raised`} aria-label="Find" finalFocus={() => !hasLeft.current}>
          <Autocomplete.Root
            open
            inline
            items={commands}
            autoHighlight="always"
            keepHighlight
            itemToStringValue={(command: Command) => command.label}
          >
            <Autocomplete.Input
              className={styles.input}
              placeholder="Find a page, an application or an action"
              aria-label="Find"
            />
            <div className={styles.list}>
              <Autocomplete.Empty className={`${styles.empty} muted`}>Nothing has this name.</Autocomplete.Empty>
              <Autocomplete.List aria-label="Results">
                {(command: Command) => (
                  <Autocomplete.Item
                    key={command.id}
                    value={command}
                    className={`${styles.item} item`}
                    onClick={() => run(command)}
                  >
                    <Icon name={command.icon} />
                    <span dir="auto">{command.label}</span>
                    <span className={`${styles.kind} muted small`}>{command.kind}</span>
                  </Autocomplete.Item>
                )}
              </Autocomplete.List>
            </div>
          </Autocomplete.Root>
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

function useCommands(onShortcuts: () => void): readonly Command[] {
  const navigate = useNavigate();
  const { data: applications = [] } = useQuery(applicationsQuery);
  return useMemo(() => {
    const action = (label: string, icon: IconName, run: () => unknown) =>
      ({ id: label, label, kind: 'Action', icon, run }) as const;
    return [
      ...NAVIGATION.map(({ to, label, icon }): Command => ({ id: to, label, kind: 'Page', icon, run: () => navigate({ to }) })),
      ...applications.map(({ id, name }): Command => {
        const run = () => navigate({ to: '/applications/$applicationId', params: { applicationId: id } });
        return { id, label: name, kind: 'Application', icon: 'applications', run };
      }),
      action('Create application', 'plus', () => navigate({ to: '/applications', search: { create: true } })),
      ...THEMES.map(([theme, label]) => action(`Use the ${label.toLowerCase()}`, 'sun', () => chooseTheme(theme))),
      action('Keyboard shortcuts', 'info', onShortcuts),
      action('Sign out', 'signOut', signOut),
    ];
  }, [applications, navigate, onShortcuts]);
}

export function ShortcutsDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts">
      <dl className={styles.shortcuts}>
        {SHORTCUTS.map(([keys, effect]) => (
          <Fragment key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{effect}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  );
}
