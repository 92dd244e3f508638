import { connect } from 'node:net';

const TIMEOUT_MS = 2_000;

/**
 * Asks a Redis on 127.0.0.1 whether it serves. Two commands are not worth a client library.
 *
 * @returns whether it took the password and answered; `false` too while it is still loading its data.
 */
export function pingRedis(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: TIMEOUT_MS });
    let answer = '';
    const settle = (ready: boolean) => {
      socket.destroy();
      resolve(ready);
    };
    socket.once('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      if (answer.split('\r\n').length > 2) settle(answer.startsWith('+OK\r\n+PONG\r\n'));
    });
    socket.once('error', () => settle(false));
    socket.once('timeout', () => settle(false));
    socket.once('close', () => settle(false));
  });
}
