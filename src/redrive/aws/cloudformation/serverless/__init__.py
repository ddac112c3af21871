"""`AWS::Serverless-2016-10-31`: templates of SAM made into templates of CloudFormation."""
