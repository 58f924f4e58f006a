// Go anywhere by typing a few letters: Ctrl-K.

import { useMemo, useState, type ReactNode } from "react";
import { useCell } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { sessionHref } from "../state/route.ts";
import { Dialog } from "./basics.tsx";

interface Place {
  label: string;
  detail: string;
  href: string;
}

const PLACES: readonly Place[] = [
  { label: "Sessions", detail: "all teams", href: "#/" },
  { label: "Start a team", detail: "new session", href: "#/new" },
  { label: "Approvals", detail: "agents that wait for an answer", href: "#/approvals" },
  { label: "Server", detail: "health and usage", href: "#/server" },
];
const MOST = 12;

export function Palette({ close }: { close: () => void }): ReactNode {
  const { live } = useMas();
  const sessions = useCell(live.sessions).value;
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const places = useMemo(() => {
    const found: Place[] = [...PLACES];
    for (const session of sessions ?? []) {
      const name = session.name ?? session.tmuxSession;
      found.push({ label: name, detail: session.status, href: sessionHref(session.sessionId) });
      found.push({ label: `${name} messages`, detail: session.status, href: sessionHref(session.sessionId, "messages") });
      found.push({ label: `${name} files`, detail: session.status, href: sessionHref(session.sessionId, "files") });
      for (const agent of session.agents) {
        const href = sessionHref(session.sessionId, "team", agent.id);
        found.push({ label: `${agent.id} ${agent.role}`, detail: name, href });
      }
    }
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return found.filter((place) => words.every((word) => `${place.label} ${place.detail}`.toLowerCase().includes(word))).slice(0, MOST);
  }, [sessions, query]);
  const chosen = Math.min(at, places.length - 1);
  const go = (place: Place | undefined): void => {
    if (!place) return;
    location.hash = place.href;
    close();
  };
  return (
    <Dialog title="Go to" close={close}>
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="places"
        aria-activedescendant={places[chosen] ? `place-${chosen}` : undefined}
        aria-label="Go to a session or an agent"
        placeholder="Session, agent or page"
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, places.length - 1));
          else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
          else if (event.key === "Enter") go(places[chosen]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="places" role="listbox" aria-label="Places" className="places">
        {places.map((place, number) => (
          <li
            key={place.href}
            id={`place-${number}`}
            role="option"
            aria-selected={number === chosen}
            onMouseMove={() => setAt(number)}
            onClick={() => go(place)}
          >
            <span>{place.label}</span> <span className="quiet">{place.detail}</span>
          </li>
        ))}
      </ul>
      {places.length === 0 && <p className="quiet">No match.</p>}
    </Dialog>
  );
}
