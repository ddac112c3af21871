"""The Amazon services, one package per service, over the wire formats they share."""
