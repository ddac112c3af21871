"""Tasks that outlive a call: redrive, replay, and the archive that replays read."""
