// Plays an agent's recording: forwards, at any speed, from any moment.

import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Terminal } from "@xterm/xterm";
import { Loading, ProblemBox } from "../parts/basics.tsx";
import { path, told, type Api, type Problem } from "../protocol/api.ts";
import { useKeys } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { bytes, clock } from "../state/words.ts";
import { Cast } from "../terminal/cast.ts";
import { Player } from "../terminal/player.ts";
import { COLOURS, FONT } from "../terminal/screen.ts";

const SPEEDS = [0.5, 1, 2, 4, 16, 64];
const USUAL_SPEED = 4;
const FRAME = 40;
const STEP = 5;
// Nobody wants to watch a pause of hours.
const LONGEST_PAUSE = 2;
const PIECE = 1 << 20;
// What MAS records is smaller: this is for files that only look like it.
const MOST = 32 << 20;

/** How much of a recording is there; what came first can be played meanwhile. */
interface Loaded {
  cast: Cast;
  done: number;
  size: number;
}

export function Replay({ sessionId, file }: { sessionId: string; file: string }): ReactNode {
  const { api } = useMas();
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let wanted = true;
    setProblem(null);
    const cast = new Cast();
    const tell = (done: number, size: number): boolean => (wanted && setLoaded({ cast, done, size }), wanted);
    load(api, sessionId, file, cast, tell).catch((error: unknown) => wanted && setProblem(told(error)));
    return () => {
      wanted = false;
    };
  }, [api, sessionId, file, turn]);
  return (
    <>
      {problem && <ProblemBox problem={problem} retry={() => setTurn(turn + 1)} />}
      {loaded ? <Deck loaded={loaded} /> : !problem && <Loading what="the recording" />}
    </>
  );
}

/** Read a recording piece by piece, for as long as it is wanted. */
async function load(api: Api, sessionId: string, file: string, cast: Cast, tell: (done: number, size: number) => boolean): Promise<void> {
  const decoder = new TextDecoder();
  let done = 0;
  for (let size = 1; done < Math.min(size, MOST); ) {
    const part = await api.bytes(path`/sessions/${sessionId}/file`, { path: file, offset: done, most: PIECE });
    if (part.data.length === 0) break;
    if (done === 0) size = part.size;
    try {
      cast.take(decoder.decode(part.data, { stream: true }));
    } catch {
      throw new Error("This is not a recording");
    }
    done += part.data.length;
    if (!tell(done, size)) return;
  }
  if (done === 0) throw new Error("Nothing has been recorded yet");
}

function Deck({ loaded }: { loaded: Loaded }): ReactNode {
  const { cast } = loaded;
  const place = useRef<HTMLDivElement>(null);
  const player = useRef<Player | null>(null);
  const end = cast.seconds;
  // The end, however far that is, until another moment is chosen.
  const [chosen, setChosen] = useState<number | null>(null);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(USUAL_SPEED);
  const at = Math.min(chosen ?? end, end);

  useEffect(() => {
    if (!place.current) return;
    const terminal = new Terminal({ disableStdin: true, fontFamily: FONT, fontSize: 13, scrollback: 2000, theme: COLOURS, minimumContrastRatio: 4.5 });
    terminal.open(place.current);
    const made = new Player(cast, terminal);
    player.current = made;
    return () => {
      made.leave();
      player.current = null;
      terminal.dispose();
    };
  }, [cast]);
  useEffect(() => player.current?.seek(at), [at, loaded.done]);

  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => {
      const next = player.current?.next ?? end;
      const later = next - at > LONGEST_PAUSE * speed ? next : at + (FRAME / 1000) * speed;
      if (later >= end) setPlaying(false);
      setChosen(Math.min(later, end));
    }, FRAME);
    return () => clearTimeout(timer);
  }, [playing, at, speed, end]);

  const toggle = useCallback(() => {
    if (!playing && at >= end) setChosen(0);
    setPlaying(!playing);
  }, [playing, at, end]);
  const go = useCallback((seconds: number) => (setPlaying(false), setChosen(Math.max(0, Math.min(seconds, end)))), [end]);
  useKeys(
    useMemo(() => {
      const faster = (by: number) => () => setSpeed((now) => SPEEDS[SPEEDS.indexOf(now) + by] ?? now);
      return {
        " ": toggle, ArrowLeft: () => go(at - STEP), ArrowRight: () => go(at + STEP),
        Home: () => go(0), End: () => go(end), "+": faster(1), "-": faster(-1),
      };
    }, [toggle, go, at, end]),
  );

  const moment = cast.began === null ? "" : clock(new Date(cast.began + at * 1000).toISOString());
  return (
    <div className="replay">
      <div className="bar">
        <button type="button" className="strong" onClick={toggle}>{playing ? "Pause" : "Play"}</button>
        <input
          type="range"
          aria-label="Position in the recording"
          aria-valuetext={`${at.toFixed(1)} of ${end.toFixed(1)} seconds`}
          min={0}
          max={end}
          step={0.1}
          value={at}
          onChange={(event) => go(Number(event.target.value))}
        />
        <output>{span(at)} / {span(end)}{moment && ` · ${moment}`}</output>
        <label>Speed{" "}
          <select value={speed} onChange={(event) => setSpeed(Number(event.target.value))}>
            {SPEEDS.map((one) => <option key={one} value={one}>{one}×</option>)}
          </select>
        </label>
      </div>
      <div className="whole" ref={place} role="group" aria-label="Recorded terminal" />
      <p className="quiet keys">
        {loaded.done < loaded.size && <strong role="status">{bytes(loaded.done)} of {bytes(loaded.size)} {loaded.size > MOST ? "can be played" : "loaded"} · </strong>}
        <kbd>Space</kbd> play · <kbd>←</kbd> <kbd>→</kbd> {STEP} s · <kbd>Home</kbd> <kbd>End</kbd> · <kbd>+</kbd> <kbd>-</kbd> speed · long pauses are skipped
      </p>
    </div>
  );
}

/** Minutes and seconds. */
function span(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
