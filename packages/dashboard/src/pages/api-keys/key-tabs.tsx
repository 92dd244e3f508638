import { Link } from '@tanstack/react-router';
import { Tabs, tabLink } from '../../components/tabs.tsx';

/** Keys, and issuers whose tokens are exchanged for keys. */
export function KeyTabs() {
  return (
    <Tabs label="API keys">
      <Link to="/api-keys" activeOptions={{ exact: true, includeSearch: false }} {...tabLink}>
        Keys
      </Link>
      <Link to="/api-keys/trusted-issuers" activeOptions={{ includeSearch: false }} {...tabLink}>
        Trusted issuers
      </Link>
    </Tabs>
  );
}
