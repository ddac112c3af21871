"""The language of templates, without input or output: what a template says, checked and evaluated."""
