import { Counter, Gauge, Histogram } from '@latchkey/kit/telemetry/metrics';

export const uploadsRunning = new Gauge({ name: 'latchkey_uploads_running', help: 'Uploads of files that are under way here.' });

export const uploads = new Counter({
  name: 'latchkey_uploads_total',
  help: 'Uploads of files that have ended, by outcome: stored, or the reason why not.',
  labels: ['outcome'],
});

export const chunks = new Counter({
  name: 'latchkey_upload_chunks_total',
  help: 'Chunks of resumable uploads that have ended, by outcome: stored, or the reason why they broke off or were rejected.',
  labels: ['outcome'],
});

export const bytesReceived = new Counter({
  name: 'latchkey_upload_bytes_total',
  help: 'Bytes of files and avatars that were received.',
});

export const downloadsOpen = new Gauge({
  name: 'latchkey_downloads_open',
  help: 'Downloads that are open here. Those from S3 do not come by.',
});

export const downloadsMax = new Gauge({
  name: 'latchkey_downloads_max',
  help: 'Downloads beyond which others are rejected here.',
});

export const bytesSent = new Counter({
  name: 'latchkey_download_bytes_total',
  help: 'Bytes of files that were sent to clients.',
});

export const sweepRemoved = new Counter({
  name: 'latchkey_sweep_removed_total',
  help: 'What the sweeper found and removed, by kind. Uploads that were abandoned are what crashes and clients left.',
  labels: ['kind'],
});

export const sweepFailures = new Counter({
  name: 'latchkey_sweep_failures_total',
  help: 'What the sweeper found and could not remove, to be tried again.',
  labels: ['kind'],
});

export const avatarDecodes = new Histogram({
  name: 'latchkey_avatar_decode_duration_seconds',
  help: 'Time that images took to be decoded, by outcome: ok, or what is wrong with them.',
  labels: ['outcome'],
  buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
});
