import pc from 'picocolors';
import type { Latchkey } from './latchkey.ts';
import type { Shape } from './settings.ts';

/** Realtime URL that the command line derives from the default of the base URL. */
const DEFAULT_REALTIME_URL = 'ws://localhost:8081/api/v1/realtime';

/** Printed once everything runs: the addresses, and a first call to paste. */
export function welcome(latchkey: Latchkey, shape: Shape, seconds: string): string {
  const { publicUrl, realtimeUrl, signUpOpen, hasDashboard, dataDir, logDir, internal, metrics } = latchkey;
  // Addresses for calls from other services. Their credential is in secrets.json.
  const callLines = Object.entries(internal).map(
    ([service, { grpc, connect }]) => `  ${service.padEnd(10)}  gRPC ${pc.cyan(grpc)}, Connect ${pc.cyan(connect)}\n`,
  );
  const dashboardLine = hasDashboard ? `  Dashboard   ${pc.cyan(publicUrl)}\n` : '';
  const metricsLines = Object.entries(metrics).map(([service, url]) => `  Metrics     ${pc.cyan(url)} (${service})\n`);
  const listenOptions = realtimeUrl === DEFAULT_REALTIME_URL ? '' : ` --url ${realtimeUrl}`;
  return `
${pc.bold('Latchkey is running')} ${pc.dim(`(${shape}, ready in ${seconds} s)`)}

${dashboardLine}  Base URL    ${pc.cyan(publicUrl)}
  API docs    ${pc.cyan(`${publicUrl}/docs`)}
  Realtime    ${pc.cyan(realtimeUrl)}
${callLines.join('')}${metricsLines.join('')}  Data        ${dataDir}
  Logs        ${logDir}

${signUpOpen ? firstSignUp(publicUrl) : firstSignIn(publicUrl)}

By command line: npx latchkey login${signUpOpen ? ' --sign-up' : ''} --url ${publicUrl}
Live events of an application: npx latchkey listen <application>${listenOptions}

Ctrl-C stops it.
`;
}

function firstSignUp(publicUrl: string): string {
  return `A first call, which creates an account and signs in:

  curl -c cookies.txt -H 'Content-Type: application/json' \\
    -d '{"username":"grace","email":"grace@example.com","password":"a long passphrase"}' \\
    ${publicUrl}/api/v1/auth/sign-up`;
}

function firstSignIn(publicUrl: string): string {
  return `Sign-up is closed. Create an account with

  npm run accounts -- create --username grace --email grace@example.com

A first call with an account:

  curl -c cookies.txt -H 'Content-Type: application/json' \\
    -d '{"email":"grace@example.com","password":"a long passphrase"}' \\
    ${publicUrl}/api/v1/auth/sign-in`;
}
