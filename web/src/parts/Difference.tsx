// What a session made of a template.

import { useMemo, type ReactNode } from "react";
import { useLoaded } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { Empty, Loading, ProblemBox } from "./basics.tsx";
import { diff, shortened } from "./diff.ts";

const SIGNS = { same: " ", gone: "-", new: "+" };

export function Difference({ file, text }: { file: string; text: string }): ReactNode {
  const { api } = useMas();
  const { value, problem, again } = useLoaded(() => api.text("/template-file", { path: file }), [file]);
  const changes = useMemo(() => (value === null ? [] : shortened(diff(value, text))), [value, text]);
  if (problem?.status === 404) return <Empty>This file has no template: it was created in the session.</Empty>;
  if (problem) return <ProblemBox problem={problem} retry={again} />;
  if (value === null) return <Loading what="the template" />;
  if (changes.every((change) => change === null)) return <Empty>The same as the template.</Empty>;
  return (
    <pre className="text diff" tabIndex={0} aria-label="Difference from the template">
      {changes.map((change, number) =>
        change === null ? (
          <span key={number} className="quiet">⋯{"\n"}</span>
        ) : (
          <span key={number} className={`is-${change.kind}`}>{SIGNS[change.kind]} {change.text}{"\n"}</span>
        ),
      )}
    </pre>
  );
}
