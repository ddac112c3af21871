"""Azure's protocols: Event Grid, the resource manager's part of it, and the sign-in both need."""
