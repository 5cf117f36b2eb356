// Stands for Headlamp's server (v0.45 backend/cmd/headlamp.go): it serves pages and plugins, and passes what they ask
// on to the API server of a kubeconfig, as the project's tests write it.
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { preview } from 'vite';

const [kubeconfig, port, ...plugins] = process.argv.slice(2);
const { clusters, users } = JSON.parse(fs.readFileSync(kubeconfig));
const { server, 'certificate-authority': authority } = clusters[0].cluster;

/** `/config`, `/plugins`, what is below it, and one page for whatever else Headlamp shows. */
function headlamp(request, response, next) {
  const { pathname } = new URL(request.url, 'http://localhost');
  const [, root, name, file] = pathname.split('/');
  const json = value =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  if (root === 'config') {
    return json({ clusters: [{ name: 'test', auth_type: '' }], isDynamicClusterEnabled: false });
  }
  if (root !== 'plugins') {
    return next();
  }
  if (name === undefined) {
    return json(plugins.map((_, at) => ({ name: `${at}`, path: `plugins/${at}`, type: 'user' })));
  }
  const inside = { 'main.js': 'dist/main.js', 'package.json': 'package.json' }[file];
  return inside && plugins[name]
    ? response.end(fs.readFileSync(path.join(plugins[name], inside)))
    : response.writeHead(404).end();
}

await preview({
  configFile: false,
  root: import.meta.dirname,
  build: { outDir: 'pages' },
  plugins: [
    { name: 'headlamp', configurePreviewServer: vite => void vite.middlewares.use(headlamp) },
  ],
  preview: {
    host: '127.0.0.1',
    port: Number(port),
    strictPort: true,
    proxy: {
      '/clusters/test/': {
        target: server,
        agent: new https.Agent({ ca: fs.readFileSync(authority) }),
        changeOrigin: true,
        ws: true,
        // As Headlamp's server goes there: with the credentials of the kubeconfig.
        headers: { authorization: `Bearer ${users[0].user.token}` },
        rewrite: url => url.slice('/clusters/test'.length),
      },
    },
  },
});
