import { useState } from 'react';
import { Icon } from '../components/icon.tsx';
import { Menu, MenuChoices, MenuItem } from '../components/menu.tsx';
import { Avatar } from '../session/avatar.tsx';
import { useAccount } from '../session/session.ts';
import { useSignOut } from '../session/sign-out.ts';
import styles from './shell.module.css';
import { chooseTheme, readTheme, type Theme } from './theme.ts';

const THEMES: Readonly<Record<Theme, string>> = { system: 'Theme of the system', light: 'Light theme', dark: 'Dark theme' };

export function AccountMenu({ onShortcuts }: { readonly onShortcuts: () => void }) {
  const account = useAccount();
  const signOut = useSignOut();
  const trigger = (
    <button type="button" className={styles.account}>
      <Avatar className={styles.avatar} alt="" />
      <span className={styles.who}>
        <span className="visually-hidden">Account of </span>
        <span className={styles.name}>{account.username}</span>
        <span className={styles.email}>{account.email}</span>
      </span>
      <Icon name="chevronDown" />
    </button>
  );
  return (
    <Menu label="Account" trigger={trigger}>
      <ThemeChoices />
      <MenuItem icon="info" onSelect={onShortcuts}>
        Keyboard shortcuts
      </MenuItem>
      <MenuItem icon="signOut" onSelect={signOut}>
        Sign out
      </MenuItem>
    </Menu>
  );
}

function ThemeChoices() {
  const [theme, setTheme] = useState(readTheme);
  const choose = (chosen: string) => {
    chooseTheme(chosen as Theme);
    setTheme(chosen as Theme);
  };
  return <MenuChoices label="Theme" labels={THEMES} value={theme} onChoose={choose} />;
}
