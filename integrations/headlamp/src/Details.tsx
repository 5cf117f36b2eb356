import {
  DetailsGrid,
  SectionBox,
  SimpleTable,
} from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { useParams } from 'react-router-dom';
import { NodeDiagnosis, Status } from './NodeDiagnosis';
import { Command, Verdict } from './Verdict';

function Evidence({ status }: { status: Status }) {
  return (
    <SectionBox title="Evidence">
      <SimpleTable
        data={status.evidence ?? []}
        columns={[
          { label: 'Object', datum: 'object' },
          { label: 'Field', datum: 'field' },
          {
            label: 'Observed',
            getter: seen => [seen.observed, seen.figures].filter(Boolean).join('; '),
          },
          { label: 'Why it matters', datum: 'because' },
        ]}
      />
    </SectionBox>
  );
}

function Suspects({ suspects }: { suspects: NonNullable<Status['suspects']> }) {
  return (
    <SectionBox title="Suspects">
      <SimpleTable
        data={suspects}
        columns={[
          { label: 'Cause', datum: 'cause' },
          { label: 'What it would mean', datum: 'summary' },
          { label: 'Settled by', getter: suspect => <Command command={suspect.command} /> },
          { label: 'Look for', datum: 'lookFor' },
        ]}
      />
    </SectionBox>
  );
}

function Unknowns({ unknowns }: { unknowns: NonNullable<Status['unknowns']> }) {
  return (
    <SectionBox title="Open questions">
      <SimpleTable
        data={unknowns}
        columns={[
          { label: 'Question', datum: 'question' },
          { label: 'Answered by', getter: unknown => <Command command={unknown.command} /> },
        ]}
      />
    </SectionBox>
  );
}

function RuledOut({ ruledOut }: { ruledOut: NonNullable<Status['ruledOut']> }) {
  return (
    <SectionBox title="Ruled out">
      <SimpleTable
        data={ruledOut}
        columns={[
          { label: 'Cause', datum: 'cause' },
          { label: 'Because', datum: 'because' },
          { label: 'Seen on', getter: cause => cause.witness ?? '' },
        ]}
      />
    </SectionBox>
  );
}

function sections({ status }: NodeDiagnosis) {
  if (status === undefined) {
    return [];
  }
  const verdict = (
    <SectionBox title="Verdict">
      <Verdict status={status} />
    </SectionBox>
  );
  return [
    { id: 'nodewhy-verdict', section: verdict },
    { id: 'nodewhy-evidence', section: <Evidence status={status} /> },
    { id: 'nodewhy-suspects', section: status.suspects && <Suspects suspects={status.suspects} /> },
    { id: 'nodewhy-unknowns', section: status.unknowns && <Unknowns unknowns={status.unknowns} /> },
    {
      id: 'nodewhy-ruled-out',
      section: status.ruledOut && <RuledOut ruledOut={status.ruledOut} />,
    },
  ].filter(({ section }) => section !== undefined);
}

export function Details() {
  const { name } = useParams<{ name: string }>();
  return (
    <DetailsGrid
      resourceType={NodeDiagnosis}
      name={name}
      withEvents
      extraSections={item => item && sections(item)}
    />
  );
}
