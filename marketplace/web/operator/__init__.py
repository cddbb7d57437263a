"""The operators' pages: requesters' money, workers' payouts, the audit log."""
