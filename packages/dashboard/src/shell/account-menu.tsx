import { useState } from 'react';
import { Icon } from '../components/icon.tsx';
import { Menu, MenuItem } from '../components/menu.tsx';
import { useAccount } from '../session/session.ts';
import { useSignOut } from '../session/sign-out.ts';
import styles from './shell.module.css';
import { chooseTheme, readTheme, THEMES, type Theme } from './theme.ts';

const THEME_LABELS: Readonly<Record<Theme, string>> = { system: 'Theme of the system', light: 'Light theme', dark: 'Dark theme' };

export function AccountMenu({ onShortcuts }: { readonly onShortcuts: () => void }) {
  const account = useAccount();
  const signOut = useSignOut();
  const [theme, setTheme] = useState(readTheme);
  const trigger = (
    <button type="button" className={styles.account}>
      <Avatar name={account.username} url={account.avatarUrl} />
      <span className={styles.who}>
        <span className="visually-hidden">Account of </span>
        <span className={styles.name}>{account.username}</span>
        <span className={styles.email}>{account.email}</span>
      </span>
      <Icon name="chevronDown" />
    </button>
  );
  return (
    <Menu trigger={trigger} align="start">
      {THEMES.map((item) => (
        <MenuItem
          key={item}
          icon={item === theme ? 'check' : 'sun'}
          onSelect={() => {
            chooseTheme(item);
            setTheme(item);
          }}
        >
          {THEME_LABELS[item]}
        </MenuItem>
      ))}
      <MenuItem icon="info" onSelect={onShortcuts}>
        Keyboard shortcuts
      </MenuItem>
      <MenuItem icon="signOut" onSelect={signOut}>
        Sign out
      </MenuItem>
    </Menu>
  );
}

/** The picture of the account. Those of other sites are not loaded: the initial stands in. */
function Avatar({ name, url }: { readonly name: string; readonly url: string | null }) {
  if (url?.startsWith('/')) return <img className={styles.avatar} src={url} alt="" width={30} height={30} />;
  return (
    <span className={styles.avatar} aria-hidden="true">
      {name.charAt(0).toUpperCase()}
    </span>
  );
}
