import { caretLine, deletion, duration, isPage, place, timeLeft } from './text';

test('durations are those of the command', () => {
  const said: [number, string][] = [
    [0, '0s'],
    [59, '59s'],
    [207, '3m 27s'],
    [180, '3m'],
    [7260, '2h 1m'],
    [90061, '1d 1h'],
    [86460, '1d'],
  ];
  for (const [seconds, text] of said) {
    expect(duration(seconds * 1000)).toBe(text);
  }
});

test('a time that has passed is not counted backwards', () => {
  const at = '2026-01-15T12:15:00Z';
  const before = Date.parse('2026-01-15T12:11:33Z');
  expect(timeLeft('Join', at, before)).toBe('in 3m 27s');
  expect(deletion('Join', at, before)).toBe('Karpenter deletes it in 3m 27s');
  const after = Date.parse('2026-01-15T12:18:27Z');
  expect(timeLeft('Launch', at, after)).toBe("3m 27s over Karpenter's launch timeout");
  expect(deletion('Join', at, after)).toBe(
    "it is 3m 27s over Karpenter's registration timeout: expect Karpenter to delete it"
  );
  expect(timeLeft('Join', at, Date.parse(at))).toBe("0s over Karpenter's registration timeout");
});

test('the caret stands below the place, also after a tab and beyond the basic plane', () => {
  const blame = { object: 'EC2NodeClass/default', excerpt: '\t💥 --flag', caret: 4, length: 6 };
  expect(caretLine(blame)).toBe('\t  ^^^^^^');
  expect(caretLine({ ...blame, length: 60 })).toBe('\t  ^^^^^^');
  expect(caretLine({ ...blame, caret: undefined })).toBeUndefined();
});

test('a place is as exact as it is known', () => {
  const object = 'EC2NodeClass/default';
  expect(place({ object })).toBe(object);
  expect(place({ object, field: 'spec.userData', line: 3, column: 39 })).toBe(
    'EC2NodeClass/default spec.userData:3:39'
  );
});

test('a script is no page', () => {
  expect(isPage('javascript:alert(1)')).toBe(false);
  expect(isPage('https://example.com/causes/KubeletStopped.md')).toBe(true);
});
