// All keys, on one page: `?`.

import type { ReactNode } from "react";
import { Dialog } from "./basics.tsx";

const KEYS: readonly [string, readonly [string, string][]][] = [
  ["Everywhere", [["Ctrl K", "go to a session, an agent or a page"], ["?", "show these keys"], ["Tab", "next link, button or field"]]],
  ["A session", [["m", "write a message to the chosen agent"], ["Ctrl ↵", "send it"]]],
  ["Its team", [["j k ← → ↑ ↓", "choose an agent"], ["Enter", "open its terminal and type"]]],
  [
    "A terminal, while typing",
    [["Ctrl ]", "stop typing, back to the page"], ["Ctrl Shift C", "copy the selection"], ["Ctrl Shift F", "search"]],
  ],
  ["A terminal, otherwise", [["Enter", "type"], ["j k", "next or previous agent"], ["/", "search"], ["Esc", "back to the team"]]],
  ["A recording", [["Space", "play, pause"], ["← →", "five seconds"], ["Home End", "beginning, end"], ["+ -", "faster, slower"]]],
];

export function Keys({ close }: { close: () => void }): ReactNode {
  return (
    <Dialog title="Keys" close={close}>
      <h2>Keys</h2>
      <div className="all-keys">
        {KEYS.map(([where, keys]) => (
          <section key={where} aria-label={where}>
            <h3>{where}</h3>
            <dl>
              {keys.map(([names, what]) => (
                <div key={names}>
                  <dt>{keyNames(names).map((name) => <kbd key={name}>{name}</kbd>)}</dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <button type="button" onClick={close}>Close</button>
    </Dialog>
  );
}

/** Keys that are pressed together are one name. */
function keyNames(names: string): string[] {
  return names.startsWith("Ctrl") ? [names] : names.split(" ");
}
