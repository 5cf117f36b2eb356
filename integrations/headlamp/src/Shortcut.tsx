import { Link } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { KubeObject } from '@kinvolk/headlamp-plugin/lib/k8s/cluster';
import { NodeDiagnosis } from './NodeDiagnosis';
import { inOrder, selector } from './selection';

/**
 * The cause at the top of a page, as a link. On its own pages of custom resources Headlamp shows what plugins put
 * there, and no sections of theirs: v0.45 frontend/src/components/crd/CustomResourceDetails.tsx.
 */
export function Shortcut({ item }: { item: KubeObject }) {
  const selected = item && selector(item);
  return selected ? <Cause fieldSelector={selected} cluster={item.cluster} /> : null;
}

function Cause(selected: { fieldSelector: string; cluster: string }) {
  const { items } = NodeDiagnosis.useList(selected);
  const [first] = inOrder(items);
  return first?.isOpen ? <Link kubeObject={first}>{first.status?.cause}</Link> : null;
}
