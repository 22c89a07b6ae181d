"""What the compiler and its servers cost, measured beside their peers in the same run."""
