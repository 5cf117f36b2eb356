import { DetailsViewSectionProps } from '@kinvolk/headlamp-plugin/lib';
import { Link, SectionBox } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Typography } from '@mui/material';
import { DiagnosisTable } from './DiagnosisTable';
import { NodeDiagnosis } from './NodeDiagnosis';
import { inOrder, selector } from './selection';
import { Verdict } from './Verdict';

/** The section of a Node, NodeClaim or NodePool: nothing where nothing was ever wrong with it. */
export function Section({ resource }: DetailsViewSectionProps) {
  const selected = resource && selector(resource);
  return selected ? <Diagnoses fieldSelector={selected} cluster={resource.cluster} /> : null;
}

function Diagnoses(selected: { fieldSelector: string; cluster: string }) {
  const { items, error } = NodeDiagnosis.useList(selected);
  // Not found: there is no nodewhy in this cluster.
  if (error && error.status !== 404) {
    return (
      <SectionBox title="nodewhy">
        <Typography color="error">{`NodeDiagnoses cannot be read: ${error.message}`}</Typography>
      </SectionBox>
    );
  }
  const [first, ...others] = inOrder(items);
  if (first?.status === undefined) {
    return null;
  }
  return (
    <SectionBox title="nodewhy">
      <Typography>
        <Link kubeObject={first}>{`NodeDiagnosis ${first.getName()}`}</Link>
      </Typography>
      <Verdict status={first.status} />
      {others.length > 0 && <DiagnosisTable diagnoses={others} />}
    </SectionBox>
  );
}
