// One agent's terminal at full size: type, select, copy, search, scroll back.

import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Badge, Dialog } from "../parts/basics.tsx";
import { Conversation } from "../parts/Conversation.tsx";
import { path } from "../protocol/api.ts";
import type { AgentView as Agent, RestartBody, SessionDetail } from "../protocol/shapes.ts";
import { useCell, useKeys } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { useMas } from "../state/mas.ts";
import { sessionHref } from "../state/route.ts";
import type { Screen, Screens } from "../terminal/screen.ts";
import { Asking } from "./Approvals.tsx";

export function AgentView({ agent, detail, session, screens }: { agent: Agent; detail: SessionDetail; session: Watched; screens: Screens }): ReactNode {
  const mas = useMas();
  const asking = useCell(mas.live.approvals).value?.find((one) => one.sessionId === detail.sessionId && one.agent === agent.id);
  const screen = screens.of(agent.id);
  const [searching, setSearching] = useState(false);
  const keys = useMemo(() => {
    const ids = detail.agents.map((one) => one.id);
    const go = (by: number) => () => {
      const next = ids[(ids.indexOf(agent.id) + by + ids.length) % ids.length];
      if (next) location.hash = sessionHref(detail.sessionId, "team", next);
    };
    return {
      j: go(1), k: go(-1), ArrowRight: go(1), ArrowLeft: go(-1),
      Escape: () => !document.querySelector("dialog[open]") && (location.hash = sessionHref(detail.sessionId)),
      Enter: () => screen.terminal.focus(),
      "/": () => setSearching(true),
    };
  }, [detail.agents, detail.sessionId, agent.id, screen]);
  useKeys(keys);
  return (
    <div className="agent">
      <nav className="roster" aria-label="Agents">
        {detail.agents.map((one) => (
          <a key={one.id} href={sessionHref(detail.sessionId, "team", one.id)} aria-current={one.id === agent.id ? "page" : undefined}>
            <span><b>{one.id}</b> <span className="role">{one.role}</span></span>
            <Badge state={one.state} source={one.stateSource} text={one.stateText} small />
          </a>
        ))}
      </nav>
      <section className="full" aria-label={`Terminal of ${agent.id}`}>
        <header className="bar">
          <a className="button" href={sessionHref(detail.sessionId)}>Team <kbd>Esc</kbd></a>
          <h2><b>{agent.id}</b> {agent.role}</h2>
          <Badge state={agent.state} source={agent.stateSource} text={agent.stateText} />
          <span className="quiet said" title={agent.stateText}>
            {agent.stateText && `${agent.stateText} · `}reported by {agent.stateSource} · {agent.provider}{agent.model && ` ${agent.model}`}
          </span>
          <Tools screen={screen} agent={agent} detail={detail} search={() => setSearching(true)} />
        </header>
        {searching && <Search screen={screen} close={() => (setSearching(false), screen.terminal.focus())} />}
        {asking && <Asking approval={asking} small />}
        <Full screen={screen} agent={agent.id} search={() => setSearching(true)} />
      </section>
      <Conversation session={session} detail={detail} agent={agent.id} />
    </div>
  );
}

function Full({ screen, agent, search }: { screen: Screen; agent: string; search: () => void }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const isLive = useCell(screen.isLive);
  const ending = useCell(screen.ending);
  const trouble = useCell(screen.trouble);
  const [typing, setTyping] = useState(false);
  const copying = useRef(useCopy(screen));
  useEffect(() => {
    const here = place.current;
    if (!here) return;
    const { terminal } = screen;
    screen.showLarge(here);
    const resized = new ResizeObserver(() => screen.enlarge(here));
    resized.observe(here);
    const changed = terminal.onResize(() => screen.enlarge(here));
    if (terminal.textarea) terminal.textarea.ariaLabel = `Terminal of ${agent}, Control ] leaves it`;
    terminal.attachCustomKeyEventHandler((event) => ours(event, screen, search, () => void copying.current()));
    const focused = (): void => setTyping(true);
    const blurred = (): void => setTyping(false);
    terminal.textarea?.addEventListener("focus", focused);
    terminal.textarea?.addEventListener("blur", blurred);
    terminal.focus();
    return () => {
      resized.disconnect();
      changed.dispose();
      terminal.textarea?.removeEventListener("focus", focused);
      terminal.textarea?.removeEventListener("blur", blurred);
      terminal.attachCustomKeyEventHandler(() => true);
      terminal.blur();
      screen.leave(here);
    };
    // The search box is only opened, whichever function does it.
  }, [screen]);
  const said = !isLive ? "Not connected: what you type is not sent" : trouble || (ending && `The agent has exited${ending.exitStatus === null ? "" : ` with status ${ending.exitStatus}`}`);
  return (
    <>
      <div className={isLive ? "whole" : "whole away"} ref={place} data-agent={agent} />
      <p className="quiet keys" role="status">
        {said ? <strong>{said}</strong> : typing ? <>Keys go to the agent · <kbd>Ctrl ]</kbd> back to the page</> : <><kbd>Enter</kbd> type · <kbd>j</kbd> <kbd>k</kbd> next agent · <kbd>/</kbd> search · <kbd>Esc</kbd> team · <kbd>?</kbd> all keys</>}
      </p>
    </>
  );
}

/** Keys that are the page's even while one types; answers whether the agent gets the key. */
function ours(event: KeyboardEvent, screen: Screen, search: () => void, copy: () => void): boolean {
  if (event.type !== "keydown" || !event.ctrlKey) return true;
  const { terminal } = screen;
  if (event.key === "]") {
    terminal.blur();
    document.getElementById("main")?.focus();
  } else if (event.shiftKey && event.key.toLowerCase() === "f") {
    search();
  } else if (event.key.toLowerCase() === "c" && (event.shiftKey || terminal.hasSelection())) {
    copy();
  } else {
    return true;
  }
  event.preventDefault();
  return false;
}

/** Put what is selected on the clipboard. */
function useCopy(screen: Screen): () => Promise<void> {
  const { notices } = useMas();
  return async () => {
    try {
      await navigator.clipboard.writeText(screen.terminal.getSelection());
      screen.terminal.clearSelection();
      notices.say("Copied");
    } catch (error) {
      notices.fail("Copy", error);
    }
  };
}

function Tools({ screen, agent, detail, search }: { screen: Screen; agent: Agent; detail: SessionDetail; search: () => void }): ReactNode {
  const copy = useCopy(screen);
  const [selected, setSelected] = useState(false);
  useEffect(() => {
    const listening = screen.terminal.onSelectionChange(() => setSelected(screen.terminal.hasSelection()));
    return () => listening.dispose();
  }, [screen]);
  const fit = (): void => {
    const place = screen.host.parentElement;
    const size = place && screen.fitting(place);
    if (size) screen.resize(size.columns, size.rows);
  };
  return (
    <>
      <ReadOut screen={screen} />
      {selected && <button type="button" onClick={() => void copy().then(() => screen.terminal.focus())}>Copy</button>}
      <button type="button" onClick={search}>Search <kbd>/</kbd></button>
      {detail.status === "active" && <button type="button" title="Change the size of its terminal, for all viewers" onClick={fit}>Fit</button>}
      <a className="button" title="Replay what it printed" href={sessionHref(detail.sessionId, "files", `logs/agent-${agent.id}.cast`)}>Replay</a>
      {detail.status === "active" && <Restart agent={agent} detail={detail} />}
    </>
  );
}

const READ_OUT = "mas-read-out";

/** For screen readers: visible only to those who go there by keyboard, and kept, because it takes time with every line. */
function ReadOut({ screen }: { screen: Screen }): ReactNode {
  const [wanted, setWanted] = useState(() => localStorage.getItem(READ_OUT) === "yes");
  useEffect(() => screen.readOut(wanted), [screen, wanted]);
  useEffect(() => () => screen.readOut(false), [screen]);
  return (
    <button
      type="button"
      className="unseen-until-focus"
      aria-pressed={wanted}
      onClick={() => (localStorage.setItem(READ_OUT, wanted ? "no" : "yes"), setWanted(!wanted))}
    >
      Read the terminal out
    </button>
  );
}

function Restart({ agent, detail }: { agent: Agent; detail: SessionDetail }): ReactNode {
  const mas = useMas();
  const [asking, setAsking] = useState(false);
  const hasEnded = agent.state === "exited";
  const restart = async (): Promise<void> => {
    setAsking(false);
    try {
      await mas.api.post(path`/sessions/${detail.sessionId}/agents/${agent.id}/restart`, { force: !hasEnded } satisfies RestartBody);
      mas.notices.say(`Restarted ${agent.id}`);
    } catch (error) {
      mas.notices.fail(`Restart ${agent.id}`, error);
    }
  };
  return (
    <>
      <button type="button" onClick={() => (hasEnded ? void restart() : setAsking(true))}>{hasEnded ? "Restart" : "Restart…"}</button>
      {asking && (
        <Dialog title={`Restart ${agent.id}`} close={() => setAsking(false)}>
          <h2>Restart {agent.id}?</h2>
          <p>It is still running ({agent.state}). Its program is stopped and started again in the same pane.</p>
          <div className="bar">
            <button type="button" className="strong" onClick={() => void restart()}>Stop and restart</button>
            <button type="button" onClick={() => setAsking(false)}>Cancel</button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Search({ screen, close }: { screen: Screen; close: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [found, setFound] = useState<{ at: number; of: number } | null>(null);
  useEffect(() => {
    const listening = screen.search.onDidChangeResults((result) => setFound({ at: result.resultIndex + 1, of: result.resultCount }));
    return () => {
      listening.dispose();
      screen.search.clearDecorations();
    };
  }, [screen]);
  const options = { decorations: { matchBackground: "#5a4a12", activeMatchBackground: "#b8860b", matchOverviewRuler: "#b8860b", activeMatchColorOverviewRuler: "#ffd700" } };
  return (
    <form className="bar find" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        autoFocus
        type="search"
        aria-label="Search in the terminal"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          screen.search.findPrevious(event.target.value, { ...options, incremental: true });
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.shiftKey ? screen.search.findNext(text, options) : screen.search.findPrevious(text, options);
          else if (event.key === "Escape") close();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <span className="quiet" role="status">{text && found ? (found.of ? `${found.at} of ${found.of}` : "nothing found") : ""}</span>
      <button type="button" onClick={() => screen.search.findPrevious(text, options)}>Previous</button>
      <button type="button" onClick={() => screen.search.findNext(text, options)}>Next</button>
      <button type="button" onClick={close}>Close</button>
    </form>
  );
}
