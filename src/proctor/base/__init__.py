"""What every package may use: errors, records, JSON data, references, text with positions."""
