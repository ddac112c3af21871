"""The wire of all Azure services: resource ids, errors, answers, credentials."""
