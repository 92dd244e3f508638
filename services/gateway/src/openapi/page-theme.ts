/** Colours with enough contrast (WCAG 2.2, 1.4.3), where those of the page have less. */
const CSS = `
.swagger-ui .info .title small { background: #595959 }
.swagger-ui .info .title small.version-stamp { background: #4a6a00 }
.swagger-ui .info a, .swagger-ui .info .url, .swagger-ui .link, .swagger-ui a.nostyle:focus { color: #1a5fb4 }
.swagger-ui .btn.authorize { color: #1a7a4f; border-color: #1a7a4f }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #0b61b8 }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1a7a4f }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0f766e }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b91c1c }
.swagger-ui .json-schema-2020-12-expand-deep-button, .swagger-ui .parameter__in, .swagger-ui .prop-format, .swagger-ui .parameter__type { color: #595959 }
`;

/** Names, a landmark and buttons without links, for a page that renders parts at any time. */
const SCRIPT = `
const root = document.getElementById('swagger-ui');
const REGIONS = { '.information-container': 'About', '.schemes-server-container': 'Servers', '.scheme-container': 'Access' };
const describe = () => {
  for (const select of root.querySelectorAll('select:not([aria-label])'))
    select.setAttribute('aria-label', select.closest('label')?.textContent.trim() || 'Choice');
  for (const [selector, label] of Object.entries(REGIONS))
    for (const part of root.querySelectorAll(selector)) {
      part.setAttribute('role', 'region');
      part.setAttribute('aria-label', label);
    }
  for (const level of [3, 4, 5])
    for (const heading of root.querySelectorAll('main h' + level)) heading.setAttribute('aria-level', level - 1);
  for (const link of root.querySelectorAll('button a[href]')) link.removeAttribute('href');
};
new MutationObserver(describe).observe(root, { childList: true, subtree: true });
`;

export const PAGE_THEME = {
  title: 'Latchkey API',
  css: [{ filename: 'latchkey.css', content: CSS }],
  js: [{ filename: 'latchkey.js', content: SCRIPT }],
};
