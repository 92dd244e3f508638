#!/usr/bin/env node
import { runProcess } from './program/run-process.ts';

// The published package has no code of the server.
await runProcess({});
