// Numbers taken again and again while one looks.

import { useEffect, useState } from "react";
import { told, type Problem } from "../protocol/api.ts";
import { added, type Sample } from "./samples.ts";

export function useSamples(take: () => Promise<Record<string, number>>, on: string, every: number): { samples: Sample[]; problem: Problem | null } {
  const [samples, setSamples] = useState<Sample[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wanted = true;
    const once = async (): Promise<void> => {
      try {
        const values = await take();
        if (!wanted) return;
        setSamples((known) => added(known, values, Date.now()));
        setProblem(null);
      } catch (error) {
        if (wanted) setProblem(told(error));
      }
      if (wanted) timer = setTimeout(() => void once(), every);
    };
    setSamples([]);
    void once();
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
    // What is taken changes with what it is taken of.
  }, [on, every]);
  return { samples, problem };
}
