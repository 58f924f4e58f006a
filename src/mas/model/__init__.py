"""What things are: pure values, no I/O, no clock."""
