import { ResourceListView } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { NodeDiagnosis } from './NodeDiagnosis';
import { timeLeft } from './text';

export function List() {
  return (
    <ResourceListView
      title="NodeDiagnoses"
      id="nodewhy-nodediagnoses"
      resourceClass={NodeDiagnosis}
      headerProps={{ noNamespaceFilter: true }}
      columns={[
        'name',
        {
          id: 'cause',
          label: 'Cause',
          getValue: ({ status }) => status?.cause,
          gridTemplate: 'auto',
        },
        { id: 'stage', label: 'Stage', getValue: ({ status }) => status?.stage },
        { id: 'machines', label: 'Machines', getValue: ({ status }) => status?.machines?.stuck },
        { id: 'nodepool', label: 'NodePool', getValue: ({ spec }) => spec.nodePool?.name },
        {
          id: 'terminates',
          label: 'Terminates',
          getValue: ({ status }) => status?.terminatesAt,
          render: ({ status }) =>
            status?.terminatesAt && timeLeft(status.stage, status.terminatesAt, Date.now()),
        },
        { id: 'outcome', label: 'Outcome', getValue: ({ status }) => status?.outcome },
        'age',
      ]}
    />
  );
}
