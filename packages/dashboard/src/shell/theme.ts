const STORAGE_KEY = 'latchkey-theme';

export const THEMES = [
  ['system', 'Theme of the system'],
  ['light', 'Light theme'],
  ['dark', 'Dark theme'],
] as const;

type Theme = (typeof THEMES)[number][0];

export function readTheme(): Theme {
  try {
    return THEMES.find(([theme]) => theme === localStorage.getItem(STORAGE_KEY))?.[0] ?? 'system';
  } catch {
    // Browsers may forbid storage.
    return 'system';
  }
}

export function applyTheme(theme = readTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function chooseTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // It then lasts until the page is left.
  }
}
