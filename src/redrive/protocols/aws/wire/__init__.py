"""What every Amazon service shares: wire formats, errors, signatures and resource names."""
