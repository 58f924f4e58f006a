"""Launch files of the version before: NUL-separated words, with all settings as one dictionary of strings.

Read where a team was started before MAS was upgraded, or by a server that still runs the older one.
"""

from __future__ import annotations

from mas.model.launch import LaunchPlan, LimitPlan, Rules, Sign, StatePlan


def plan_of_old(text: str) -> LaunchPlan:
    """The plan that such a file holds; `ValueError` if it is damaged.

    Without the keys to quit by: a launcher that ran before the upgrade would not understand today's part that types
    them, so its agent ends by a signal.
    """
    argv, env, options, *resume = text.split("\0\0")
    old = _pairs(options)
    return LaunchPlan(
        argv=_arguments(argv),
        env=_pairs(env),
        nofile=_number(old, "nofile"),
        opener=_number(old, "opener"),
        lazy=old.get("lazy"),
        restart=old.get("restart", ""),
        restart_limit=_number(old, "restart_limit") or 0,
        resume=_arguments(resume[0]) if resume else (),
        resume_if=old.get("resume_if", ""),
        isolation=_rules(old),
        limits=_limits(old),
        states=_states(old),
        spool="spool" in old,
    )


def _arguments(text: str) -> tuple[str, ...]:
    return tuple(argument[1:] for argument in text.split("\0"))


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split("\0") if pair)


def _number(old: dict[str, str], name: str) -> int | None:
    return int(old[name]) if name in old else None


def _states(old: dict[str, str]) -> StatePlan:
    return StatePlan(
        sources=tuple(name for name in old.get("sources", "").split(",") if name),
        start_timeout=float(old.get("start_timeout", "0")),
        title_map=_signs(old, "title_map"),
        titles_wait=old.get("titles_from") == "hooks",
        dialogs=_signs(old, "dialogs", hints=True),
        screen_map=_signs(old, "screen_map"),
        quiet=float(old.get("quiet", "1")),
        hook_map=tuple(_sign(event, state) for event, state in _lines(old, "hook_map")),
        answer_hook=old.get("answer_hook", ""),
        answer_timeout=float(old.get("answer_timeout", "0")),
    )


def _lines(old: dict[str, str], name: str) -> list[list[str]]:
    return [line.split("=", 1) for line in old.get(name, "").split("\n") if "=" in line]


def _sign(match: str, what: str, hint: str = "") -> Sign:
    state, _, kind = what.partition(":")
    return Sign(match=match, state=state, kind=kind, hint=hint)


def _signs(old: dict[str, str], name: str, hints: bool = False) -> tuple[Sign, ...]:
    """Lines `state:kind=regex`, those of dialogs with a tab and a hint."""
    split = ((what, *rest.rpartition("\t")[::2]) if hints else (what, rest, "") for what, rest in _lines(old, name))
    return tuple(_sign(pattern, what, hint) for what, pattern, hint in split)


def _rules(old: dict[str, str]) -> Rules | None:
    if "isolation" not in old:
        return None

    def paths(name: str) -> tuple[str, ...]:
        return tuple(value for key, value in old.items() if key.startswith(f"isolation.{name}."))

    tier, how = old["isolation"].split(" ")
    ports, account = old.get("isolation.ports"), old.get("isolation.account")
    uid, _, gid = (account or "").partition(":")
    return Rules(
        tier=tier,
        how=how,
        write=paths("write"),
        binds=tuple(zip(paths("source"), paths("target"), strict=True)),
        read=paths("read"),
        hide=paths("hide"),
        ports=None if ports is None else tuple(int(port) for port in ports.split(",") if port),
        account=(int(uid), int(gid)) if account else None,
    )


def _limits(old: dict[str, str]) -> LimitPlan | None:
    if "limits" not in old:
        return None
    names = ("memory", "processes", "file_size")
    counts = {name: old[f"count_{name}"].rpartition(" ") for name in names if f"count_{name}" in old}
    return LimitPlan(
        groups=tuple(old.get("limit_groups", "").splitlines()),
        files=_number(old, "limit_files"),
        file_size=_number(old, "limit_file_size"),
        data=_number(old, "limit_data"),
        processes=_number(old, "limit_processes"),
        most_memory=_number(old, "sum_memory") or 0,
        most_processes=_number(old, "sum_processes") or 0,
        counts={name: (path.removeprefix("scope:"), word) for name, (path, _, word) in counts.items()},
        words={name: old[f"words_{name}"] for name in names if f"words_{name}" in old},
    )
