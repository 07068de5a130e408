"""What every package may use: errors, records, JSON data, names, lazy exports, references, text with positions."""
