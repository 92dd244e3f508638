import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { Failure, modulesDir, root } from './checkout.mjs';
import { run } from './run-child.mjs';

/**
 * The package `pnpm` only starts a program of another package for each system. These are the hashes
 * of their tarballs: `npm view @pnpm/exe.linux-x64@<version> dist.integrity`. The version is the
 * `packageManager` of package.json.
 */
const integrities = {
  'darwin-arm64': 'sha512-A0WDo8iErfZBXgrLseQxw8i8Y9ctUpOEl/Uu+cubnTzpD8tT9ykIB548L8YTM2WD4OS+ZOHSxy8aGZcvKq8PaQ==',
  'darwin-x64': 'sha512-MSgJdovBWHcb5DEOvfPH9yNi/T5O1Xa4ess+E1ESGo/5yuty7S4JoiIjami+fsNXfnoQMlwsMUqYU4zAvBcNCw==',
  'linux-arm64': 'sha512-2dSiDXyhx+RTHsewxex8f/jVjqQXWJ2oow4kCVHEWdZKeBpgMxvZ6fHkTAUBJXgqhbKIDHvuNlZBP7gJfUWL5A==',
  'linux-x64': 'sha512-/pbt0UVTa8NMDhzOWLQRfZ6G9ROKXlJPZtx845BqyWfc7hCrWXhTLBd70yO2y8+E+IWN3oHM1s/JsIQNGk1yvg==',
};

/**
 * Runs pnpm, which npm downloads: it knows the user's registry, proxies and cache.
 *
 * @param options those of `run`
 * @returns {Promise<number>} the exit code
 */
export async function runPackageManager(args, options) {
  const dir = `${modulesDir}/.cache/pnpm`;
  const program = `${dir}/pnpm`;
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  try {
    writeFileSync(program, readMember(await download(dir, options), 'package/pnpm'), { mode: 0o755 });
    return await run(program, args, options);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** @returns the bytes of the tarball, which have the committed hash */
async function download(dir, options) {
  const system = `${process.platform}-${process.arch}`;
  const integrity = integrities[system];
  if (!integrity) throw new Failure(`Latchkey can't be installed on ${system}: use Linux or macOS on x64 or arm64.`);
  // The image's build has the manifests in its own folder, and the scripts in another.
  const { packageManager } = JSON.parse(readFileSync(`${options.cwd ?? root}/package.json`, 'utf8'));
  const version = packageManager.replace(/^pnpm@/, '');
  const args = ['pack', `@pnpm/exe.${system}@${version}`, '--pack-destination', dir, '--prefer-offline', '--loglevel=error'];
  const code = await run('npm', args, { ...options, stdio: ['ignore', 'ignore', 2] }).catch((err) => {
    throw new Failure(`npm could not be run (${err.message}): install npm, which comes with Node.js.`);
  });
  if (code !== 0) throw new Failure('The package manager could not be downloaded, for the reason above. Start again.');
  const tarball = readFileSync(`${dir}/${readdirSync(dir)[0]}`);
  if (`sha512-${createHash('sha512').update(tarball).digest('base64')}` !== integrity) {
    throw new Failure(`npm downloaded another pnpm ${version} than the one of this checkout: check the registry that npm uses.`);
  }
  return tarball;
}

/** The bytes of a file in a tarball of npm, which has short names only. */
function readMember(tarball, name) {
  const tar = gunzipSync(tarball);
  for (let at = 0; at < tar.length; ) {
    const size = Number.parseInt(tar.toString('latin1', at + 124, at + 136), 8) || 0;
    if (tar.toString('latin1', at, at + 100).split('\0')[0] === name) return tar.subarray(at + 512, at + 512 + size);
    at += 512 * (1 + Math.ceil(size / 512));
  }
  throw new Failure(`The package manager has no ${name}.`);
}
