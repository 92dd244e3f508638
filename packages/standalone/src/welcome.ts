import pc from 'picocolors';
import type { Latchkey, Shape } from './latchkey.ts';

/** What to tell once everything runs: where it is, and a first call to paste. */
export function welcome({ publicUrl, signUpOpen, dataDir, logDir, grpc }: Latchkey, shape: Shape, seconds: string): string {
  return `
${pc.bold('Latchkey is running')} ${pc.dim(`(${shape}, ready in ${seconds} s)`)}

  Base URL    ${pc.cyan(publicUrl)}
  API docs    ${pc.cyan(`${publicUrl}/docs`)}
${grpcLine(grpc)}  Data        ${dataDir}
  Logs        ${logDir}

${signUpOpen ? firstSignUp(publicUrl) : firstSignIn(publicUrl)}

Ctrl-C stops it.
`;
}

/** Where other services call; the credential they need is with the secrets. */
function grpcLine(grpc: Latchkey['grpc']): string {
  const addresses = Object.entries(grpc).map(([service, address]) => `${service} ${pc.cyan(address)}`);
  return addresses.length === 0 ? '' : `  gRPC        ${addresses.join(', ')}\n`;
}

function firstSignUp(publicUrl: string): string {
  return `A first call, which creates an account and signs in:

  curl -c cookies.txt -H 'Content-Type: application/json' \\
    -d '{"username":"ada","email":"ada@example.com","password":"a long passphrase"}' \\
    ${publicUrl}/api/v1/auth/sign-up`;
}

function firstSignIn(publicUrl: string): string {
  return `A first call, for somebody who has an account:

  curl -c cookies.txt -H 'Content-Type: application/json' \\
    -d '{"email":"ada@example.com","password":"a long passphrase"}' \\
    ${publicUrl}/api/v1/auth/sign-in`;
}
