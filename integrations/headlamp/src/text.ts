import { Blame } from './NodeDiagnosis';

/** As the command says it: `3m 27s`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts: [number, string][] = [
    [Math.floor(seconds / 86400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = first === -1 ? parts.slice(-1) : parts.slice(first, first + 2);
  return shown
    .filter(([count], at) => at === 0 || count > 0)
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ');
}

/** When Karpenter deletes the machine, seen from `now`; afterwards how long its timeout is past. */
export function timeLeft(stage: string, terminatesAt: string, now: number): string {
  const left = Date.parse(terminatesAt) - now;
  if (left > 0) {
    return `in ${duration(left)}`;
  }
  const timeout = stage === 'Launch' ? 'launch' : 'registration';
  return `${duration(-left)} over Karpenter's ${timeout} timeout`;
}

/** The same as a part of a sentence, as the command says it. */
export function deletion(stage: string, terminatesAt: string, now: number): string {
  const left = timeLeft(stage, terminatesAt, now);
  return Date.parse(terminatesAt) > now
    ? `Karpenter deletes it ${left}`
    : `it is ${left}: expect Karpenter to delete it`;
}

/** The place that is to blame: `EC2NodeClass/default spec.userData:3:39`. */
export function place({ object, field, line, column }: Blame): string {
  const at = [field, line, column].filter(part => part !== undefined).join(':');
  return at ? `${object} ${at}` : object;
}

/** What goes below the excerpt: as wide as it up to the place, tabs included, then a caret for each character. */
export function caretLine({ excerpt, caret, length }: Blame): string | undefined {
  if (excerpt === undefined || caret === undefined) {
    return undefined;
  }
  const before = [...excerpt].slice(0, caret - 1).map(c => (c === '\t' ? c : ' '));
  const room = [...excerpt].length - before.length;
  return before.join('') + '^'.repeat(Math.max(1, Math.min(length ?? 1, room)));
}

/** A link of an object is followed to a page and nowhere else. */
export function isPage(link: string): boolean {
  return link.startsWith('https://');
}
