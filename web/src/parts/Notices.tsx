// What was done or went wrong, at the edge of the page.

import type { ReactNode } from "react";
import { useCell } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";

export function NoticeList(): ReactNode {
  const { notices } = useMas();
  return (
    <div className="notices" role="status" aria-live="polite">
      {useCell(notices.all).map((notice) => (
        <div key={notice.id} className={notice.bad ? "notice bad" : "notice"}>
          <span>{notice.text}</span>
          {notice.undo && (
            <button
              type="button"
              onClick={() => {
                notices.remove(notice.id);
                notice.undo?.();
              }}
            >
              Undo
            </button>
          )}
          <button type="button" className="plain" aria-label="Dismiss" onClick={() => notices.remove(notice.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
