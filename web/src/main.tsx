// The page begins here.

import { StrictMode, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { Empty } from "./parts/basics.tsx";
import { later } from "./parts/later.tsx";
import { Shell } from "./parts/Shell.tsx";
import { ApprovalsPage } from "./pages/Approvals.tsx";
import { SessionsPage } from "./pages/Sessions.tsx";
import { NotHere, SignIn } from "./pages/SignIn.tsx";
import { StartPage } from "./pages/Start.tsx";
import { Door } from "./protocol/door.ts";
import { useCell, useRoute } from "./state/hooks.ts";
import { Mas, MasContext, useMas } from "./state/mas.ts";
import { notifyOf } from "./state/notify.ts";
// The styles of parts that come later, too: a browser asks for them only once.
import "@xterm/xterm/css/xterm.css";
import "uplot/dist/uPlot.min.css";
import "./style/page.css";
import "./style/session.css";

// Terminals and plots come when they are looked at.
const SessionPage = later(() => import("./pages/Session.tsx"));
const ServerPage = later(() => import("./pages/Server.tsx"));

function Page(): ReactNode {
  const { live } = useMas();
  const link = useCell(live.connection);
  const route = useRoute();
  if (link === "signed-out" || link === "stranger") return <SignIn why={link} />;
  return (
    <Shell>
      {route.page === "sessions" && <SessionsPage />}
      {route.page === "new" && <StartPage />}
      {route.page === "approvals" && <ApprovalsPage />}
      {route.page === "server" && <ServerPage />}
      {route.page === "session" && <SessionPage key={route.id} route={route} />}
      {route.page === "nowhere" && <Empty><h1>Page not found</h1><a href="#/">All sessions</a></Empty>}
    </Shell>
  );
}

const place = document.getElementById("page");
if (place && !Door.isPossible) {
  createRoot(place).render(<NotHere />);
} else if (place) {
  const mas = new Mas();
  createRoot(place).render(
    <StrictMode>
      <MasContext value={mas}>
        <Page />
      </MasContext>
    </StrictMode>,
  );
  mas.start();
  notifyOf(mas);
}
