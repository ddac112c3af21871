"""How deliveries are pushed: one kind of place each, all of them `redrive.engine.ports.Endpoint`."""
