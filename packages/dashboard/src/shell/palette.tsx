import { Autocomplete } from '@base-ui/react/autocomplete';
import { Dialog } from '@base-ui/react/dialog';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useRef } from 'react';
import { applicationsQuery } from '../api/queries.ts';
import dialog from '../components/dialog.module.css';
import { Icon, type IconName } from '../components/icon.tsx';
import { signOut } from '../session/sign-out.ts';
import { NAVIGATION } from './navigation.ts';
import styles from './palette.module.css';
import { chooseTheme } from './theme.ts';

interface Command {
  readonly id: string;
  readonly label: string;
  readonly kind: 'Page' | 'Application' | 'Action';
  readonly icon: IconName;
  readonly run: () => unknown;
}

interface PaletteProps {
  readonly onClose: () => void;
  readonly onShortcuts: () => void;
}

/** Finds pages, applications and actions by their names. */
export function Palette({ onClose, onShortcuts }: PaletteProps) {
  const commands = useCommands(onShortcuts);
  const hasLeft = useRef(false);
  const run = (command: Command) => {
    hasLeft.current = command.kind !== 'Action';
    onClose();
    command.run();
  };
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className={dialog.backdrop} />
        {/* A new page takes the focus. */}
        <Dialog.Popup className={`${styles.popup} raised`} aria-label="Find" finalFocus={() => !hasLeft.current}>
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
                  <Autocomplete.Item key={command.id} value={command} className={styles.item} onClick={() => run(command)}>
                    <Icon name={command.icon} />
                    <span dir="auto">{command.label}</span>
                    <span className={`${styles.kind} muted small`}>{command.kind}</span>
                  </Autocomplete.Item>
                )}
              </Autocomplete.List>
            </div>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function useCommands(onShortcuts: () => void): readonly Command[] {
  const navigate = useNavigate();
  const { data: applications = [] } = useQuery(applicationsQuery);
  return useMemo(() => {
    const action = (label: string, icon: IconName, run: () => unknown): Command => ({
      id: label,
      label,
      kind: 'Action',
      icon,
      run,
    });
    return [
      ...NAVIGATION.map(({ to, label, icon }): Command => ({ id: to, label, kind: 'Page', icon, run: () => navigate({ to }) })),
      ...applications.map(({ id, name }): Command => {
        const run = () => navigate({ to: '/applications/$applicationId', params: { applicationId: id } });
        return { id, label: name, kind: 'Application', icon: 'applications', run };
      }),
      action('Create application', 'plus', () => navigate({ to: '/applications', search: { create: true } })),
      action('Use the light theme', 'sun', () => chooseTheme('light')),
      action('Use the dark theme', 'sun', () => chooseTheme('dark')),
      action('Use the theme of the system', 'sun', () => chooseTheme('system')),
      action('Keyboard shortcuts', 'info', onShortcuts),
      action('Sign out', 'signOut', signOut),
    ];
  }, [applications, navigate, onShortcuts]);
}
