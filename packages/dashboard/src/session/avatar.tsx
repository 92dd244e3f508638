import { serverUrl } from '../api/settings.ts';
import { useAccount } from './session.ts';

/** Avatars of issuers are on other sites, which are not loaded: the initial stands in. */
export function Avatar({ className, alt }: { readonly className: string | undefined; readonly alt: string }) {
  const names = `${className} avatar`;
  const { username, avatarUrl } = useAccount();
  if (avatarUrl?.startsWith('/')) return <img className={names} src={serverUrl + avatarUrl} alt={alt} />;
  return (
    <span className={names} aria-hidden="true">
      {username.charAt(0).toUpperCase()}
    </span>
  );
}
