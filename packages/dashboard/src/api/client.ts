import { Latchkey } from '@latchkey/client';
import { basePath, realtimeUrl } from './settings.ts';

/** Pages repeat reads themselves, and show the time that a rate limit leaves instead of waiting. */
export const latchkey = new Latchkey({ url: location.origin + basePath, retries: 0, realtimeUrl });
