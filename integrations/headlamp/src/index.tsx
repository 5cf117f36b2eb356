import {
  registerDetailsViewHeaderAction,
  registerDetailsViewSection,
  registerRoute,
  registerSidebarEntry,
} from '@kinvolk/headlamp-plugin/lib';
import { Details } from './Details';
import { List } from './List';
import { Section } from './Section';
import { Shortcut } from './Shortcut';

registerSidebarEntry({
  parent: 'cluster',
  name: 'nodediagnoses',
  label: 'NodeDiagnoses',
  url: '/nodewhy/nodediagnoses',
});

registerRoute({
  path: '/nodewhy/nodediagnoses',
  sidebar: 'nodediagnoses',
  name: 'nodediagnoses',
  exact: true,
  component: List,
});

registerRoute({
  path: '/nodewhy/nodediagnoses/:name',
  sidebar: 'nodediagnoses',
  name: 'nodediagnosis',
  exact: true,
  component: Details,
});

registerDetailsViewSection(Section);
registerDetailsViewHeaderAction(Shortcut);
