const STORAGE_KEY = 'latchkey-theme';

const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export function readTheme(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(STORAGE_KEY)) ?? 'system';
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
