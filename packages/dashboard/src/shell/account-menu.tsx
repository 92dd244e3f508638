import { useState } from 'react';
import { Icon } from '../components/icon.tsx';
import { Menu, MenuItem } from '../components/menu.tsx';
import { Avatar } from '../session/avatar.tsx';
import { useAccount } from '../session/session.ts';
import { signOut } from '../session/sign-out.ts';
import styles from './shell.module.css';
import { chooseTheme, readTheme, THEMES } from './theme.ts';

export function AccountMenu({ onShortcuts }: { readonly onShortcuts: () => void }) {
  const account = useAccount();
  const trigger = (
    <button type="button" className={`${styles.account} plain item`}>
      <Avatar className={styles.avatar} alt="" />
      <span className={`${styles.who} grow`}>
        <span className="visually-hidden">Account of </span>
        <span className={`${styles.name} strong`}>{account.username}</span>
        <span className={`${styles.email} muted small`}>{account.email}</span>
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
  const [chosen, setChosen] = useState(readTheme);
  const choose = (theme: typeof chosen) => {
    chooseTheme(theme);
    setChosen(theme);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not belong in a menu.
    <div role="group" aria-label="Theme">
      {THEMES.map(([theme, label]) => (
        <MenuItem key={theme} icon="sun" checked={theme === chosen} onSelect={() => choose(theme)}>
          {label}
        </MenuItem>
      ))}
    </div>
  );
}
