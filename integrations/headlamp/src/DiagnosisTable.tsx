import { Link, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { NodeDiagnosis } from './NodeDiagnosis';

/** More than one NodeDiagnosis, each in a line. */
export function DiagnosisTable({ diagnoses }: { diagnoses: NodeDiagnosis[] }) {
  return (
    <SimpleTable
      data={diagnoses}
      rowsPerPage={[10, 25, 50]}
      columns={[
        { label: 'Name', getter: diagnosis => <Link kubeObject={diagnosis} /> },
        { label: 'Cause', getter: diagnosis => diagnosis.status?.cause },
        { label: 'Stage', getter: diagnosis => diagnosis.status?.stage },
        { label: 'Ended', getter: diagnosis => diagnosis.status?.outcome ?? '' },
      ]}
    />
  );
}
