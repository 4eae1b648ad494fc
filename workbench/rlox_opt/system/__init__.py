"""The machine's side: files, git, processes, and what every verb needs for its user."""
