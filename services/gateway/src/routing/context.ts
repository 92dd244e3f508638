import type { Cookies } from '../authentication/cookies.ts';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients } from '../clients.ts';
import type { CursorSigner } from '../cursor/cursor-signer.ts';
import type { FilesDataPath } from '../files-data-path.ts';
import type { RateLimits } from '../rate-limit/rate-limits.ts';

/** Dependencies of the handlers of routes. */
export interface RouteContext {
  readonly clients: Clients;
  readonly filesData: FilesDataPath;
  readonly limits: RateLimits;
  readonly signInFailures: SignInFailures;
  readonly cookies: Cookies;
  /** Base URL of the service for clients. */
  readonly publicUrl: string;
  /** Where browsers end up after OpenID Connect; undefined means that they get the envelope. */
  readonly oidcReturnUrl: string | undefined;
  readonly cursors: CursorSigner;
  /** Largest image of an avatar, in bytes. */
  readonly avatarBytesMax: number;
}
