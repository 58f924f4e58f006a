"""What people look at: lists, one session, its files, and what everything uses."""
