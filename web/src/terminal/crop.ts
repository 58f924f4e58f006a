// Which part of a terminal a tile shows: the tail round the cursor, at a size that can be read.

export interface Grid {
  columns: number;
  rows: number;
}

export interface Corner {
  column: number;
  row: number;
}

// Programs often draw a line or two below the one they read.
const BELOW = 2;
const BESIDE = 4;

/** The first column and row to show of `whole` in a window of `shown` cells, so that the cursor is in it. */
export function crop(whole: Grid, shown: Grid, cursor: Corner): Corner {
  const below = shown.rows > 2 * BELOW ? BELOW : 0;
  const row = cursor.row + 1 + below - shown.rows;
  const column = cursor.column + BESIDE < shown.columns ? 0 : cursor.column + BESIDE - shown.columns;
  return {
    row: clamp(row, whole.rows - shown.rows),
    column: clamp(column, whole.columns - shown.columns),
  };
}

function clamp(value: number, most: number): number {
  return Math.max(0, Math.min(value, most));
}
