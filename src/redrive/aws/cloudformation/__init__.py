"""AWS CloudFormation: stacks of resources, made, changed and removed as their templates say."""
