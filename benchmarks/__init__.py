"""How long MAS takes beside the floor (tmux, cp and Python alone) and beside other tools, in one run."""
