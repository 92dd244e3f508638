// Runs the pinned pnpm where there is no checkout to install, as for the image.
import { runPackageManager } from './package-manager.mjs';

process.exitCode = await runPackageManager(process.argv.slice(2), { cwd: process.cwd() });
