"""CloudFormation: the language of templates, by tables, with nothing but values."""
