import { KubeObject } from '@kinvolk/headlamp-plugin/lib/k8s/cluster';
import { NodeDiagnosis } from './NodeDiagnosis';

/**
 * Which NodeDiagnoses are about an object, as the API server selects them; nothing where none can be. Those of
 * NodeClaims are called as they are. A NodePool has its own and those of its machines; of these may be many that ended.
 */
export function selector({ jsonData }: KubeObject): string | undefined {
  const { apiVersion = '', kind, metadata } = jsonData;
  const isKarpenter = apiVersion.startsWith('karpenter.sh/');
  switch (kind) {
    case 'Node':
      return apiVersion === 'v1' ? `spec.node.name=${metadata.name}` : undefined;
    case 'NodeClaim':
      return isKarpenter ? `metadata.name=${metadata.name}` : undefined;
    case 'NodePool':
      return isKarpenter ? `spec.nodePool.name=${metadata.name},status.outcome=` : undefined;
    default:
      return undefined;
  }
}

/** Those with a verdict: what is stuck first, and of that what speaks for the most machines. */
export function inOrder(diagnoses: NodeDiagnosis[] | null): NodeDiagnosis[] {
  const rank = (diagnosis: NodeDiagnosis) =>
    (diagnosis.isOpen ? 0 : 2) + (diagnosis.spec.subject.kind === 'NodePool' ? 0 : 1);
  return (diagnoses ?? [])
    .filter(diagnosis => diagnosis.status !== undefined)
    .sort((a, b) => rank(a) - rank(b) || a.getName().localeCompare(b.getName()));
}
