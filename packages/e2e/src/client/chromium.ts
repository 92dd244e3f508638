import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const PATHS = (process.env.PATH ?? '').split(delimiter).flatMap((folder) => NAMES.map((name) => join(folder, name)));

/** Undefined where no Chromium is installed: tests with a browser are skipped then. */
export const chromiumPath = PATHS.find((path) => existsSync(path));

/** Options of tests with a browser. `npm test` names what skipped tests need. */
export const IN_CHROMIUM = {
  skip: chromiumPath === undefined,
  timeout: 120_000,
  meta: { needs: 'Chromium (Debian: apt install chromium)' },
};
