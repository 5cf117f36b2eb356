// Bundles headlamp.jsx with the pages of Headlamp. Its translations are left out: English is what they translate.
import { build } from 'esbuild';
import fs from 'node:fs';
import path from 'node:path';

const asText = Object.fromEntries(
  ['.svg', '.woff2', '.woff', '.ttf', '.png'].map(ext => [ext, 'dataurl'])
);

await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ['headlamp.jsx'],
  outdir: 'pages',
  bundle: true,
  format: 'esm',
  jsx: 'automatic',
  loader: asText,
  alias: { path: 'path-browserify' },
  define: {
    global: 'globalThis',
    process: JSON.stringify({ env: { NODE_ENV: 'production' } }),
    'import.meta.env': '{}',
  },
  logLevel: 'error',
});
const inside = file => path.join(import.meta.dirname, file);
fs.copyFileSync(inside('index.html'), inside('pages/index.html'));
