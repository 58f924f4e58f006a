// A part of a file, as text: never more at once than one can look at.

import { path, type Api } from "../protocol/api.ts";

const MOST = 512 << 10;
const LOOKED_AT = 8000;

export interface Part {
  text: string;
  from: number;
  length: number;
  size: number;
  /** How much a part holds at most. */
  most: number;
  whole: boolean;
  binary: boolean;
}

/** A part of a file from an offset on; without one its end. */
export async function readPart(api: Pick<Api, "bytes">, session: string, file: string, from: number | null): Promise<Part> {
  const where = path`/sessions/${session}/file`;
  let offset = from ?? 0;
  let { data, size } = await api.bytes(where, { path: file, offset, most: MOST });
  if (from === null && size > MOST) {
    offset = size - MOST;
    ({ data, size } = await api.bytes(where, { path: file, offset, most: MOST }));
  }
  const text = new TextDecoder().decode(data);
  return { text, from: offset, length: data.length, size, most: MOST, whole: data.length >= size, binary: isBinary(data) };
}

/** Whether it is something else than text in UTF-8. A letter that is cut at either end does not make it so. */
export function isBinary(data: Uint8Array): boolean {
  const looked = data.subarray(0, LOOKED_AT);
  if (looked.includes(0)) return true;
  const unreadable = new TextDecoder().decode(looked).split("\ufffd").length - 1;
  return unreadable > 6 && unreadable > looked.length / 50;
}

/** Text of a terminal without what only a terminal understands. */
export function plain(text: string): string {
  return text.replace(/\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f]/g, "");
}
