"""What people see: one run in, one document out."""
