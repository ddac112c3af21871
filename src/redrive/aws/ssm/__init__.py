"""AWS Systems Manager: the parameter store, as much of it as templates and deployment tools use."""
