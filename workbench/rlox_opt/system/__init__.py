"""Asked of the machine: files, git, processes, and what a verb owes whoever runs it."""
