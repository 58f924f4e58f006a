// How components look at the page's state.

import { useCallback, useEffect, useLayoutEffect, useMemo, useState, useSyncExternalStore } from "react";
import { told, type Problem } from "../protocol/api.ts";
import type { Cell } from "./cell.ts";
import { keepDraft, readDraft } from "./drafts.ts";
import type { Watched } from "./live.ts";
import { useMas } from "./mas.ts";
import { parseRoute, type Route } from "./route.ts";
import type { Numbers } from "./sampler.ts";

export function useCell<T>(cell: Cell<T>): T {
  return useSyncExternalStore(cell.subscribe, cell.get);
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(onHash, () => location.hash);
  return useMemo(() => parseRoute(hash), [hash]);
}

function onHash(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}

/** The time, updated every few seconds. */
export function useNow(every = 10_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

export function useDraft(name: string): [string, (text: string) => void] {
  const [text, setText] = useState(() => readDraft(name));
  useEffect(() => setText(readDraft(name)), [name]);
  const change = useCallback(
    (next: string) => {
      setText(next);
      keepDraft(name, next);
    },
    [name],
  );
  return [text, change];
}

/** One session, kept up to date while it is shown. */
export function useWatched(id: string): Watched | null {
  const { live } = useMas();
  const [session, setSession] = useState<Watched | null>(null);
  useEffect(() => {
    const watching = live.watch(id);
    setSession(watching.session);
    return watching.leave;
  }, [live, id]);
  return session?.id === id ? session : null;
}

/** The numbers of everything, loaded while they are shown. */
export function useNumbers(): Numbers {
  const { sampler } = useMas();
  useEffect(() => sampler.watch(), [sampler]);
  return useCell(sampler.numbers);
}

/** Something loaded once, and again when asked. */
export function useLoaded<T>(load: () => Promise<T>, on: readonly unknown[]): { value: T | null; problem: Problem | null; again: () => void } {
  const [state, setState] = useState<{ value: T | null; problem: Problem | null }>({ value: null, problem: null });
  const [turn, setTurn] = useState(0);
  const link = useCell(useMas().live.connection);
  // What failed while the server was away is loaded when it is back.
  const missed = state.problem?.mayPass ?? false;
  useEffect(() => {
    if (link === "live" && missed) setTurn((last) => last + 1);
  }, [link]);
  useEffect(() => {
    let wanted = true;
    load().then(
      (value) => wanted && setState({ value, problem: null }),
      (error: unknown) => wanted && setState({ value: null, problem: told(error) }),
    );
    return () => {
      wanted = false;
    };
    // What it depends on is named by the caller.
  }, [...on, turn]);
  return { ...state, again: useCallback(() => setTurn((last) => last + 1), []) };
}

/** Keys for the whole page, unless the user is typing. */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  // Before anything is seen: a key pressed at once counts.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const name = `${event.ctrlKey || event.metaKey ? "Ctrl-" : ""}${event.key}`;
      const act = keys[name];
      if (!act || event.defaultPrevented || event.altKey) return;
      if (!name.startsWith("Ctrl-") && isTyping(event.target)) return;
      if (isTerminal(event.target) || isPressed(event)) return;
      if (name !== "Escape" && document.querySelector("dialog[open]")) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [keys]);
}

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !/^(range|checkbox|radio|button)$/.test(target.type);
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Whether the key presses what has the focus: then it is for that alone. */
function isPressed(event: KeyboardEvent): boolean {
  return /^( |Enter)$/.test(event.key) && event.target instanceof Element && event.target.closest("a, button, summary, input:not([type=range])") !== null;
}

function isTerminal(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest(".xterm") !== null;
}
