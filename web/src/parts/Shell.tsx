// The frame round every page: where one can go, whether the server is there, what waits for an answer.

import { useMemo, useState, type ReactNode } from "react";
import { useCell, useKeys, useRoute } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { Keys } from "./Keys.tsx";
import { NoticeList } from "./Notices.tsx";
import { Palette } from "./Palette.tsx";

export function Shell({ children }: { children: ReactNode }): ReactNode {
  const { live } = useMas();
  const route = useRoute();
  const waiting = useCell(live.approvals).value?.length ?? 0;
  const [palette, setPalette] = useState(false);
  const [keys, setKeys] = useState(false);
  useKeys(useMemo(() => ({ "Ctrl-k": () => setPalette(true), "?": () => setKeys(true) }), []));
  const here = (page: string): "page" | undefined => (route.page === page ? "page" : undefined);
  return (
    <>
      <a className="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to content
      </a>
      <header className="top">
        <a href="#/" className="brand">MAS</a>
        <nav aria-label="Main">
          <a href="#/" aria-current={here("sessions")}>Sessions</a>
          <a href="#/approvals" aria-current={here("approvals")}>
            Approvals{waiting > 0 && " "}{waiting > 0 && <span className="bubble">{waiting}<span className="unseen"> waiting</span></span>}
          </a>
          <a href="#/server" aria-current={here("server")}>Server</a>
        </nav>
        <span className="grow" />
        <LinkState />
        <button type="button" className="wide-only" onClick={() => setPalette(true)}>Go to <kbd>Ctrl K</kbd></button>
        <button type="button" className="wide-only" aria-label="Keys" title="All keys" onClick={() => setKeys(true)}><kbd>?</kbd></button>
        <a className="button strong" href="#/new">Start a team</a>
      </header>
      <main id="main" tabIndex={-1}>{children}</main>
      <NoticeList />
      {keys && <Keys close={() => setKeys(false)} />}
      {palette && <Palette close={() => setPalette(false)} />}
    </>
  );
}

function LinkState(): ReactNode {
  const mas = useMas();
  const link = useCell(mas.live.connection);
  return (
    <span className={`link is-${link}`} role="status">
      {link === "reconnecting" ? (
        <>Reconnecting… <button type="button" className="plain" onClick={() => mas.wake()}>now</button></>
      ) : link === "live" ? "Live" : link === "connecting" ? "Connecting…" : "Signed out"}
    </span>
  );
}
