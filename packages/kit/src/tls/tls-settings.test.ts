import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readConfig } from '../config.ts';
import { serviceUrlSetting } from './tls-settings.ts';

const read = (APPS_URL: string) => readConfig(z.object({ APPS_URL: serviceUrlSetting }), { APPS_URL });

describe('the URL of another service', () => {
  it.each(['http://127.0.0.1:8082', 'https://apps:8082', 'http://apps', 'http://[::1]:8082/'])('may be %s', (url) => {
    expect(read(url)).toEqual({ APPS_URL: url });
  });

  it.each(['http://apps:8082/api', 'http://apps:8082?x=1', 'http://apps:8082/#x', 'http://ada:secret@apps:8082'])(
    'may not have more than a host and a port, which nothing could be called at: %s',
    (url) => {
      expect(() => read(url)).toThrow(/^APPS_URL must be http:\/\/host:port or https:\/\/host:port, and nothing more$/);
    },
  );

  it('is told what it has to start with where it is none', () => {
    expect(() => read('apps:8082')).toThrow(/^APPS_URL must be a URL that starts with http:\/\/ or https:\/\/$/);
  });
});
