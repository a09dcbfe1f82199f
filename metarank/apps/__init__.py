"""What is made of metarank: the command line, the service, reports."""
