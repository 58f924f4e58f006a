"""Policies and limits of all kinds, for properties that must hold for each of them."""

from __future__ import annotations

from hypothesis import strategies as st

from mas.model.isolation import Isolation, Limits, Mode, NetworkMode, Policy, SessionLimits, Tier

_PATH = st.text(st.characters(codec="utf-8", exclude_characters="\0~"), min_size=1, max_size=8)
_PATHS = st.lists(_PATH | _PATH.map("~/{}".format), max_size=2, unique=True).map(tuple)
_SIZE = st.none() | st.integers(1, 1 << 50)
_COUNT = st.none() | st.integers(1, 1 << 40)
_CORES = st.none() | st.floats(0.01, 4096)

_HOST = st.from_regex(r"(\*\.)?[a-z0-9]{1,8}\.[a-z]{2,4}(:[1-9][0-9]{0,3})?", fullmatch=True)
_HOSTS = st.lists(_HOST | st.just("localhost:5432") | st.just("10.1.2.3:443"), max_size=2, unique=True).map(tuple)

POLICIES = st.builds(
    Policy,
    enforce=st.none() | st.sampled_from(Mode),
    read=_PATHS,
    write=_PATHS,
    hide=_PATHS,
    ports=st.none() | st.lists(st.integers(1, 65535), max_size=3).map(tuple),
    run_as=st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
    network=st.none() | st.sampled_from(NetworkMode),
    allow=_HOSTS,
    private=_HOSTS,
)
AGENT_LIMITS = st.builds(Limits, _SIZE, _COUNT, _CORES, _COUNT, _SIZE, st.none())
SESSION_LIMITS = st.builds(
    SessionLimits, session=st.builds(Limits, _SIZE, _COUNT, _CORES, _COUNT, _SIZE, _SIZE), agent=AGENT_LIMITS
)
ISOLATIONS = st.builds(
    Isolation,
    tier=st.sampled_from(Tier),
    how=st.sampled_from(["namespaces", "bwrap", "landlock", ""]),
    not_enforced=st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=2).map(tuple),
    not_available=st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=2).map(tuple),
    account=st.none() | st.just("somebody"),
    policy=POLICIES,
    network=st.sampled_from(NetworkMode),
)
