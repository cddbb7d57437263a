"""What pages show of studies of recorded dialogues, and what they ask for."""
