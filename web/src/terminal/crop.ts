// Which part of a terminal a tile shows: the tail round the cursor, at a size that can be read.

export interface Grid {
  columns: number;
  rows: number;
}

export interface Corner {
  column: number;
  row: number;
}

const BESIDE = 4;
// Programs often draw a line or two below the one they read.
export const BELOW = 3;

/**
 * The first column and row to show of `whole` in a window of `shown` cells, so that the cursor is in it, and as much
 * as there is room for of the `below` lines beneath it.
 */
export function crop(whole: Grid, shown: Grid, cursor: Corner, below: number): Corner {
  const row = cursor.row + 1 + Math.min(below, shown.rows - 1) - shown.rows;
  const column = cursor.column + BESIDE < shown.columns ? 0 : cursor.column + BESIDE - shown.columns;
  return {
    row: clamp(row, whole.rows - shown.rows),
    column: clamp(column, whole.columns - shown.columns),
  };
}

function clamp(value: number, most: number): number {
  return Math.max(0, Math.min(value, most));
}
