// Counts what a process writes to its sockets. It is loaded before the program (NODE_OPTIONS).

import { renameSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { basename, dirname } from 'node:path';

/** The end of a statement of PostgreSQL. */
const SYNC = 'S\0\0\0\u0004';
/** The beginning of a command of Redis, or of a call of a service. */
const HEAD = /^(?:\*\d+\r|POST \/)/gm;

const service = basename(dirname(dirname(process.argv[1] ?? '')));
const path = `${process.env.WRITES_DIR}/${service}-${process.pid}.json`;

/** Writes and messages by port of the peer; 'clients' are those that connected to this process. */
const counts = {};

function count(socket, chunks) {
  const peer = socket.server ? 'clients' : socket.remotePort;
  const text = chunks.map((chunk) => (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1'))).join('');
  counts[peer] ??= { writes: 0, messages: 0 };
  counts[peer].writes += 1;
  counts[peer].messages += text.split(SYNC).length - 1 + (text.match(HEAD)?.length ?? 0);
  // Before the peer can have read it.
  writeFileSync(`${path}.new`, JSON.stringify(counts));
  renameSync(`${path}.new`, path);
}

const { _write, _writev } = Socket.prototype;
Socket.prototype._write = function write(chunk, ...rest) {
  if (!this.connecting) count(this, [chunk]);
  return _write.call(this, chunk, ...rest);
};
Socket.prototype._writev = function writev(chunks, ...rest) {
  if (!this.connecting)
    count(
      this,
      chunks.map(({ chunk }) => chunk),
    );
  return _writev.call(this, chunks, ...rest);
};
