"""What each command does; a module is imported when its command is run, so that help is quick."""
