// What changed between two texts, line by line.

export interface Change {
  kind: "same" | "gone" | "new";
  text: string;
}

// Above this many pairs of lines only the equal lines at the start and the end are found.
const MOST_PAIRS = 4_000_000;

export function diff(before: string, after: string): Change[] {
  const old = before.split("\n");
  const fresh = after.split("\n");
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < fresh.length - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  return [
    ...said("same", old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...said("same", old.slice(old.length - tail)),
  ];
}

/** The longest common subsequence, and what is round it. */
function middle(old: readonly string[], fresh: readonly string[]): Change[] {
  if (old.length * fresh.length > MOST_PAIRS) return [...said("gone", old), ...said("new", fresh)];
  const width = fresh.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number): number => longest[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = fresh.length - 1; column >= 0; column -= 1) {
      longest[row * width + column] =
        old[row] === fresh[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const found: Change[] = [];
  let row = 0;
  let column = 0;
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && old[row] === fresh[column]) {
      found.push({ kind: "same", text: old[row++] ?? "" });
      column += 1;
    } else if (row < old.length && (column === fresh.length || at(row + 1, column) >= at(row, column + 1))) {
      found.push({ kind: "gone", text: old[row++] ?? "" });
    } else {
      found.push({ kind: "new", text: fresh[column++] ?? "" });
    }
  }
  return found;
}

function said(kind: Change["kind"], lines: readonly string[]): Change[] {
  return lines.map((text) => ({ kind, text }));
}

const ROUND = 3;

/** The changes with a few lines round them; null stands for what was left out. */
export function shortened(changes: readonly Change[]): (Change | null)[] {
  const near = new Set<number>();
  changes.forEach((change, number) => {
    if (change.kind === "same") return;
    for (let other = number - ROUND; other <= number + ROUND; other += 1) near.add(other);
  });
  const found: (Change | null)[] = [];
  changes.forEach((change, number) => {
    if (near.has(number)) found.push(change);
    else if (found.at(-1) !== null) found.push(null);
  });
  return found;
}
