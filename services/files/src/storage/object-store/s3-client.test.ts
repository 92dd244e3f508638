import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { STALLED, watchSocket } from './s3-client.ts';

/** A socket whose silence is reported by hand. */
class FakeSocket extends EventEmitter {
  connecting = false;
  bytesRead = 0;
  writableLength = 0;
  /** Each time-out that was set. */
  readonly timeoutsMs: number[] = [];
  failure: Error | undefined;

  setTimeout(timeoutMs: number): void {
    this.timeoutsMs.push(timeoutMs);
  }

  destroy(err: Error): void {
    this.failure = err;
  }

  fallSilent(): void {
    this.emit('timeout');
  }
}

function watched() {
  const socket = new FakeSocket();
  const begin = watchSocket(socket as unknown as Socket, 1_000);
  begin();
  return { socket, begin };
}

describe('a request to S3', () => {
  it('fails once the store takes no more of its body', () => {
    const { socket } = watched();
    socket.writableLength = 100;
    socket.fallSilent();
    expect(socket.failure).toMatchObject({ name: STALLED });
    // Node reports silence while it writes after one or two of these.
    expect(socket.timeoutsMs).toEqual([500]);
  });

  it.each([false, true])('fails after the whole time while it waits for an answer (connecting: %s)', (connecting) => {
    const { socket } = watched();
    Object.assign(socket, { connecting, writableLength: connecting ? 100 : 0 });
    socket.fallSilent();
    expect([socket.failure, socket.timeoutsMs]).toEqual([undefined, [500, 500]]);
    socket.fallSilent();
    expect(socket.failure).toMatchObject({ name: STALLED });
  });

  it('goes on for as long as bytes of the answer come, and gives its reader more time', () => {
    const { socket } = watched();
    for (let i = 0; i < 10; i += 1) {
      socket.bytesRead += 1;
      socket.fallSilent();
    }
    expect(socket.failure).toBeUndefined();
    expect(socket.timeoutsMs.slice(1)).toEqual(Array.from({ length: 10 }, () => 15_000));
    socket.fallSilent();
    expect(socket.failure).toMatchObject({ name: STALLED });
  });

  it('on a connection that was used before has the whole time', () => {
    const { socket, begin } = watched();
    socket.bytesRead = 100;
    socket.fallSilent();
    begin();
    socket.fallSilent();
    expect(socket.failure).toBeUndefined();
    expect(socket.timeoutsMs.slice(-2)).toEqual([500, 500]);
    socket.fallSilent();
    expect(socket.failure).toMatchObject({ name: STALLED });
  });
});
