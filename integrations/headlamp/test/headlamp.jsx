// Headlamp's own store, routes, pages and loader of plugins, as its package for plugins ships them, put together as in
// headlamp v0.45 frontend/src/App.tsx, components/App/AppContainer.tsx and Layout.tsx, which that package lacks.
// First, as there: its modules import each other in circles.
import Plugins from '@kinvolk/headlamp-plugin/lib/plugin/Plugins';
import { useCurrentAppTheme } from '@kinvolk/headlamp-plugin/lib/components/App/themeSlice';
import RouteSwitcher, {
  PreviousRouteProvider,
} from '@kinvolk/headlamp-plugin/lib/components/App/RouteSwitcher';
import Sidebar from '@kinvolk/headlamp-plugin/lib/components/Sidebar';
import i18n from '@kinvolk/headlamp-plugin/lib/i18n/config';
import { request } from '@kinvolk/headlamp-plugin/lib/lib/k8s/api/v1/clusterRequests';
import { queryClient } from '@kinvolk/headlamp-plugin/lib/lib/queryClient';
import { setStore } from '@kinvolk/headlamp-plugin/lib/lib/router/createRouteURL';
import { createMuiTheme, usePrefersColorScheme } from '@kinvolk/headlamp-plugin/lib/lib/themes';
import { setConfig } from '@kinvolk/headlamp-plugin/lib/redux/configSlice';
import { useTypedSelector } from '@kinvolk/headlamp-plugin/lib/redux/hooks';
import store from '@kinvolk/headlamp-plugin/lib/redux/stores/store';
import CssBaseline from '@mui/material/CssBaseline';
import { ThemeProvider } from '@mui/material/styles';
import { QueryClientProvider } from '@tanstack/react-query';
import { SnackbarProvider } from 'notistack';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { I18nextProvider } from 'react-i18next';
import { Provider } from 'react-redux';
import { BrowserRouter } from 'react-router-dom';

setStore(store);

function Layout() {
  const isReady = useTypedSelector(state => state.plugins.loaded && state.config.clusters !== null);
  return (
    <div style={{ display: 'flex' }}>
      <CssBaseline enableColorScheme />
      <Sidebar />
      <main style={{ flexGrow: 1, minWidth: 0 }}>
        {isReady && <RouteSwitcher requiresToken={() => false} />}
      </main>
    </div>
  );
}

function Headlamp() {
  usePrefersColorScheme();
  const theme = useCurrentAppTheme();
  const muiTheme = React.useMemo(() => createMuiTheme(theme), [theme]);
  return (
    <I18nextProvider i18n={i18n}>
      <ThemeProvider theme={muiTheme}>
        <SnackbarProvider>
          <BrowserRouter>
            <PreviousRouteProvider>
              <Plugins />
              <Layout />
            </PreviousRouteProvider>
          </BrowserRouter>
        </SnackbarProvider>
      </ThemeProvider>
    </I18nextProvider>
  );
}

request('/config', {}, false, false).then(config => {
  const clusters = Object.fromEntries(config.clusters.map(cluster => [cluster.name, cluster]));
  store.dispatch(setConfig({ ...config, clusters }));
});

createRoot(document.getElementById('root')).render(
  <Provider store={store}>
    <QueryClientProvider client={queryClient}>
      <Headlamp />
    </QueryClientProvider>
  </Provider>
);
