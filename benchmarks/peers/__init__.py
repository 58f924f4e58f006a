"""MAS, tmux alone, libtmux, tmuxp and another agent orchestrator, doing the same work in turns in one run."""
