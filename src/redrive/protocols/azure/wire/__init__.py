"""What all of Azure's services share: resource ids, errors, answers, credentials."""
