"""Every line of the threat model is shown by tests: this says by which, and fails for a line without any."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.site import REPOSITORY

# The lines of "Who is kept out", by the first words of what is tried; and those of "The model", by their first word.
SHOWN_BY: dict[str, tuple[str, ...]] = {
    "write to the templates": ("isolation/test_acceptance.py::test_a_hostile_agent_gets_nowhere_and_can_work",),
    "read `~/.ssh`": (
        "isolation/test_acceptance.py::test_a_hostile_agent_gets_nowhere_and_can_work",
        "isolation/test_root.py::test_files_and_sockets_of_the_user_s_do_not_exist_wherever_they_are",
        "service/test_enclosure.py::test_secrets_stay_hidden_in_what_a_policy_shows_unless_it_names_them",
        "e2e/test_keys.py::test_no_isolated_agent_sees_where_keys_are_kept",
    ),
    "run a command outside": (
        "isolation/test_acceptance.py::test_a_hostile_agent_gets_nowhere_and_can_work",
        "sandbox/test_escapes.py::test_sockets_outside_are_out_of_reach",
    ),
    "answer its own permission question": (
        "e2e/test_own_door.py::test_an_agent_speaks_for_itself_only",
        "http/test_tokens.py::test_it_is_good_for_no_other_call",
        "model/test_forged.py::test_whatever_makes_a_line_look_like_a_header_it_is_escaped",
    ),
    "escape by a new namespace": (
        "sandbox/test_escapes.py::test_no_wall_can_be_taken_down",
        "sandbox/test_calls.py::test_closed_calls_and_those_of_a_kernel_to_come_are_refused",
        "sandbox/test_calls.py::test_no_file_gets_a_set_user_or_group_id_bit",
        "isolation/test_gaps.py::test_nothing_is_open_but_what_is_documented",
    ),
    "reach your database": (
        "network/test_egress.py::test_a_name_that_leads_to_an_address_that_is_not_public_is_refused",
        "network/test_egress.py::test_addresses_and_the_machines_own_services_cannot_be_reached",
        "isolation/test_network.py::test_a_service_of_the_machine_is_out_of_reach_and_all_agents_share_one_network",
        "isolation/test_gaps.py::test_nothing_is_open_but_what_is_documented",
    ),
    "take the port of MAS's server": (
        "isolation/test_network.py::test_an_agent_cannot_take_the_port_of_the_server_when_that_has_ended",
        "sandbox/test_tier_b.py::test_the_port_of_mas_can_be_connected_to_and_not_taken",
    ),
    "outlive the stop": (
        "isolation/test_outlive.py::test_daemons_without_any_trace_end_with_their_session",
        "isolation/test_outlive.py::test_an_isolated_agent_cannot_shed_the_mark",
        "isolation/test_outlive.py::"
        "test_a_storm_of_processes_ends_with_its_session_although_launcher_and_egress_were_killed",
    ),
    "be the owner at a server's socket file": (
        "isolation/test_neighbours.py::"
        "test_no_server_takes_an_isolated_agent_for_its_owner_with_or_without_a_stolen_token",
        "http/test_peers.py::test_one_in_other_namespaces_is_refused_with_the_owners_token",
    ),
    "speak to the server as an agent of another session": (
        "http/test_peers.py::test_by_the_network_of_a_session_only_its_own_agents_come_in",
        "isolation/test_gaps.py::test_nothing_is_open_but_what_is_documented",
    ),
    "keep you or other agents out": (
        "http/test_shares.py::test_the_owner_and_other_agents_get_in_while_an_agent_holds_more_than_there_may_be",
        "http/test_shares.py::test_work_of_one_session_keeps_neither_the_owner_nor_other_sessions_waiting",
    ),
    "use up memory, processes, disk": (
        "e2e/test_limits.py::test_limits_hold_behind_walls_too",
        "isolation/test_root.py::"
        "test_all_memory_that_looks_like_files_has_a_size_and_only_one_part_of_it_can_be_written",
        "e2e/test_limits.py::test_a_session_that_takes_all_its_disk_is_stopped_and_can_come_back_once_there_is_room",
    ),
    "a link, pipe, device": (
        "e2e/test_planted.py::test_a_session_full_of_traps_lives_its_whole_life",
        "e2e/test_hostile_trees.py::test_no_verb_of_a_session_is_stopped_by_what_its_agent_left",
    ),
    "a program called `tmux`": (
        "isolation/test_traps.py::test_no_program_that_an_agent_put_into_its_directory_runs_outside_whatever_path_says",
    ),
    "a lease on a file": ("isolation/test_gaps.py::test_nothing_is_open_but_what_is_documented",),
    "another name for a directory": (
        "sandbox/test_files.py::test_no_directory_on_the_way_to_what_is_less_can_get_another_name",
    ),
    "print sequences": ("fuzz/streams.py::osc_reports", "pane/test_osc.py::test_"),
    "call the API as you": (
        "http/test_guard.py::test_pages_of_other_servers_may_not_use_this_one",
        "http/test_guard.py::test_a_foreign_host_is_refused_whatever_else_is_right",
    ),
    "get what signs you in": ("web/test_signing_in.py::test_no_cookie_and_no_bearer_reaches_another_port_or_name",),
    "get what an open tab sends": (
        "web/test_signing_in.py::test_a_program_that_takes_the_port_gets_a_nonce_and_nothing_else",
    ),
    "serve a page of its own there": (
        "isolation/test_network.py::test_in_a_shared_network_an_agent_can_take_that_port",
        "sandbox/test_tier_b.py::test_in_tier_b_no_port_can_be_listened_at_without_a_policy",
    ),
    "read sessions or tokens": (
        "isolation/test_other_users.py::test_another_user_reads_what_is_documented_and_nothing_else",
        "http/test_listening.py::test_another_user_is_shut_out_even_if_the_file_lets_them_in",
    ),
    "writes": ("service/test_enclosure.py::test_an_agent_writes_its_session_s_work_and_sees_the_rest_of_it",),
    "reads": (
        "isolation/test_root.py::test_the_root_is_the_list",
        "isolation/test_root.py::test_what_agents_work_with_works",
    ),
    "does not see": (
        "isolation/test_root.py::test_another_workspace_does_not_exist",
        "isolation/test_root.py::test_a_workspace_inside_the_workspace_does_not_exist",
        "isolation/test_neighbours.py::test_in_tier_a_no_file_of_any_server_exists",
        "isolation/test_traps.py::"
        "test_of_another_workspace_in_what_a_policy_shows_no_session_is_seen_and_nothing_can_be_changed",
    ),
    "reaches": (
        "network/test_egress.py::test_public_names_are_reached_at_the_usual_ports_without_any_setting",
        "isolation/test_network.py::test_agents_reach_mas_whatever_port_its_server_has",
        "sandbox/test_escapes.py::test_of_the_ports_only_those_that_are_allowed_can_be_used",
    ),
    "is stopped": ("isolation/test_acceptance.py::test_a_hostile_agent_gets_nowhere_and_can_work",),
}


def rows(heading: str, column: int) -> list[str]:
    """A column of the table below a heading."""
    page = Path(REPOSITORY, "docs", "explanation", "isolation.md").read_text("utf-8")
    part = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    table = [line.split(" | ") for line in part.splitlines() if line.startswith("| ")][1:]
    return [line[column].strip("| ") for line in table]


def test_every_line_of_the_threat_model_is_shown_by_tests() -> None:
    lines = [*rows("Who is kept out", 1), *rows("The model", 0)]
    assert len(lines) > 20
    assert [line for line in lines if not any(line.startswith(words) for words in SHOWN_BY)] == []
    assert [words for words in SHOWN_BY if not any(line.startswith(words) for line in lines)] == []


@pytest.mark.parametrize("line", SHOWN_BY)
def test_the_tests_that_show_a_line_exist(line: str) -> None:
    for test in SHOWN_BY[line]:
        file, _, name = test.partition("::")
        path = os.path.join(REPOSITORY, "tests", file)
        assert re.search(rf"def {name}", Path(path).read_text("utf-8")), test
