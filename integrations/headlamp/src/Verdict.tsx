import { NameValueTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { Box, Button, Link, Typography } from '@mui/material';
import React from 'react';
import { Blame, Status, Step } from './NodeDiagnosis';
import { caretLine, deletion, duration, isPage, place } from './text';

/** The time, anew each second. */
function useNow(): number {
  const [now, setNow] = React.useState(Date.now);
  React.useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function Lines({ children, label }: { children: string; label: string }) {
  return (
    // Who has no mouse scrolls it by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <Box
      component="pre"
      role="group"
      aria-label={label}
      tabIndex={0}
      m={0}
      sx={{ overflowX: 'auto', fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace' }}
    >
      {children}
    </Box>
  );
}

function Place({ blame }: { blame: Blame }) {
  const carets = caretLine(blame);
  return (
    <>
      <Typography>{place(blame)}</Typography>
      {blame.excerpt !== undefined && (
        <Lines label="The line to change">
          {carets === undefined ? blame.excerpt : `${blame.excerpt}\n${carets}`}
        </Lines>
      )}
    </>
  );
}

export function Command({ command }: { command: string }) {
  const [said, setSaid] = React.useState('Copy');
  const copy = () =>
    navigator.clipboard.writeText(command).then(
      () => setSaid('Copied'),
      () => setSaid('Not permitted')
    );
  return (
    <Box display="flex" alignItems="center" gap={1}>
      <Lines label="Command">{command}</Lines>
      <Button size="small" onClick={copy} aria-label={`${said}: ${command}`}>
        {said}
      </Button>
    </Box>
  );
}

function Steps({ steps }: { steps: Step[] }) {
  return (
    <ol>
      {steps.map((step, at) => (
        <li key={at}>
          {step.text} ({step.risk})
          {step.command !== undefined && <Command command={step.command} />}
        </li>
      ))}
    </ol>
  );
}

function Time({ status }: { status: Status }) {
  const now = useNow();
  if (status.outcome !== undefined) {
    const ago = status.endedAt && `, ${duration(now - Date.parse(status.endedAt))} ago`;
    return <>{`${status.outcome}${ago ?? ''}`}</>;
  }
  const since = `at ${status.stage} for ${duration(now - Date.parse(status.firstObservedAt))}`;
  return (
    <>
      {status.terminatesAt
        ? `${since}; ${deletion(status.stage, status.terminatesAt, now)}`
        : since}
    </>
  );
}

/** Cause, place, time left and fix: what somebody needs who is on call. */
export function Verdict({ status }: { status: Status }) {
  const { blame, fix, machines } = status;
  const cause = `${status.cause} (${status.confidence})`;
  const counts = machines?.causes?.map(({ cause, stuck }) => `${stuck} by ${cause}`).join(', ');
  return (
    <NameValueTable
      rows={[
        {
          name: 'Cause',
          value:
            fix && isPage(fix.documentation) ? (
              <Link href={fix.documentation} target="_blank" rel="noreferrer">
                {cause}
              </Link>
            ) : (
              cause
            ),
        },
        { name: 'Why', value: status.summary },
        { name: status.outcome === undefined ? 'Stuck' : 'Ended', value: <Time status={status} /> },
        {
          name: 'Machines',
          value: machines && `${machines.stuck} stuck${counts ? `: ${counts}` : ''}`,
          hide: machines === undefined,
        },
        { name: 'Where', value: blame && <Place blame={blame} />, hide: blame === undefined },
        {
          name: 'Fix',
          value: fix && (
            <>
              {fix.summary}
              {fix.disruption !== undefined && <p>{`Risk: ${fix.disruption}`}</p>}
              <Steps steps={fix.steps ?? []} />
            </>
          ),
          hide: fix === undefined,
        },
      ]}
    />
  );
}
