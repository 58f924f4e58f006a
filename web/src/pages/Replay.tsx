// Plays an agent's recording: forwards, at any speed, from any moment.

import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Terminal } from "@xterm/xterm";
import { clock } from "../state/words.ts";
import { parseCast, sizeAt, upTo, type Cast } from "../terminal/cast.ts";

const SPEEDS = [1, 4, 16, 64];
const FRAME = 40;
// Nobody wants to watch a pause of hours.
const LONGEST_PAUSE = 2;

export function Replay({ text, startedAt }: { text: string; startedAt: string | null }): ReactNode {
  const cast = useMemo(() => {
    try {
      return parseCast(text);
    } catch {
      return null;
    }
  }, [text]);
  if (!cast) return <p className="quiet">This is not a recording.</p>;
  return <Player cast={cast} startedAt={startedAt} />;
}

function Player({ cast, startedAt }: { cast: Cast; startedAt: string | null }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal | null>(null);
  const shown = useRef(0);
  const [at, setAt] = useState(cast.seconds);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(4);

  const seek = useCallback(
    (seconds: number) => {
      const screen = terminal.current;
      if (!screen) return;
      const wanted = upTo(cast, seconds);
      if (wanted < shown.current) {
        screen.reset();
        shown.current = 0;
      }
      const size = sizeAt(cast, wanted);
      if (screen.cols !== size.columns || screen.rows !== size.rows) screen.resize(size.columns, size.rows);
      const printed = cast.moments.slice(shown.current, wanted).filter((moment) => moment.kind === "o");
      screen.write(printed.map((moment) => moment.data).join(""));
      shown.current = wanted;
      setAt(seconds);
    },
    [cast],
  );

  useEffect(() => {
    if (!place.current) return;
    const made = new Terminal({ disableStdin: true, fontSize: 13, scrollback: 5000, theme: { background: "#14181c", foreground: "#d6dde3" } });
    made.open(place.current);
    terminal.current = made;
    shown.current = 0;
    seek(cast.seconds);
    return () => {
      terminal.current = null;
      made.dispose();
    };
  }, [cast, seek]);

  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => {
      const next = cast.moments[shown.current];
      const step = (FRAME / 1000) * speed;
      const later = next && next.at - at > LONGEST_PAUSE * speed ? next.at : at + step;
      if (later >= cast.seconds) setPlaying(false);
      seek(Math.min(later, cast.seconds));
    }, FRAME);
    return () => clearTimeout(timer);
  }, [playing, at, speed, cast, seek]);

  const moment = startedAt ? clock(new Date(Date.parse(startedAt) + at * 1000).toISOString()) : "";
  return (
    <div className="replay">
      <div className="bar">
        <button type="button" className="strong" onClick={() => (at >= cast.seconds && seek(0), setPlaying(!playing))}>{playing ? "Pause" : "Play"}</button>
        <input
          type="range"
          aria-label="Moment of the recording"
          aria-valuetext={`${at.toFixed(1)} of ${cast.seconds.toFixed(1)} seconds`}
          min={0}
          max={cast.seconds}
          step={0.1}
          value={at}
          onChange={(event) => (setPlaying(false), seek(Number(event.target.value)))}
        />
        <output>{at.toFixed(1)} / {cast.seconds.toFixed(1)} s {moment}</output>
        <label>Speed{" "}
          <select value={speed} onChange={(event) => setSpeed(Number(event.target.value))}>
            {SPEEDS.map((one) => <option key={one} value={one}>{one}×</option>)}
          </select>
        </label>
      </div>
      <div className="whole" ref={place} />
    </div>
  );
}
