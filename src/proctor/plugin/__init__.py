"""What the pytest plugin loads once there is something for it to do."""
