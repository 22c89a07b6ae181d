"""A small compute service over REST: quotes with signed terms, approvals, jobs and batches that start once, results."""
