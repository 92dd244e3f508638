import { createRoute } from '@tanstack/react-router';
import { lazyComponent } from '../../components/lazy-component.ts';
import { rootRoute } from '../../routing/routes.tsx';

export const confirmEmailRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/confirm-email',
  component: lazyComponent(() => import('./view.tsx'), 'ConfirmEmailPage'),
});
