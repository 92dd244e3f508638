import { defineConfig } from 'vite';

/** The Latchkey of `npm run dev`. The default of `changeOrigin` fails its check of `Origin`. */
const gateway = { target: `http://localhost:${process.env.PORT || 8080}`, changeOrigin: false };

export default defineConfig({
  // Relative, as a proxy may prefix all paths. The gateway writes the prefix into index.html.
  base: './',
  // 48 kB less than react-dom, for which the first page waits: a second at 400 kbit/s.
  resolve: { alias: { react: 'preact/compat', 'react-dom': 'preact/compat' }, dedupe: ['preact'] },
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // The Content-Security-Policy allows data: URLs for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // Libraries mark modules for servers that render React.
      onwarn: (warning, warn) => warning.code !== 'MODULE_LEVEL_DIRECTIVE' && warn(warning),
      // Few files: one for the first page, and for all pages those that are loaded when it is idle.
      // Each counts against the rate limit of a visitor's address.
      output: {
        codeSplitting: {
          groups: [
            { name: 'initial', tags: ['$initial'], priority: 2 },
            { name: 'controls', test: /@base-ui|@floating-ui|src.(components|toast|shell)/, priority: 1 },
            { name: 'pages', test: /src.pages.(account|api-keys|application|audit-log)/ },
          ],
        },
      },
    },
  },
  server: { proxy: { '/api': gateway, '/docs': gateway } },
});
