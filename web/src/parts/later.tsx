// Parts of the page that come when they are first looked at.

import type { ComponentType, ReactNode } from "react";
import { Problem } from "../protocol/api.ts";
import type { Door } from "../protocol/door.ts";
import { useLoaded } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { Loading, ProblemBox } from "./basics.tsx";

/** A part that is loaded when it is shown; if that fails the page says so, and loads it again once the server is back. */
export function later<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  let Known: ComponentType<P> | null = null;
  const get = async (door: Door): Promise<void> => {
    try {
      // Scripts come from our own server alone.
      await door.open();
      Known ??= (await load()).default;
    } catch {
      throw new Problem(0, "unreachable", "This part of the page did not load. If the server was upgraded, reload the page.");
    }
  };
  return function Later(props: P): ReactNode {
    const { door } = useMas();
    const { problem, again } = useLoaded(() => get(door), []);
    if (Known) return <Known {...props} />;
    return problem ? <ProblemBox problem={problem} retry={again} /> : <Loading what="the page" />;
  };
}
