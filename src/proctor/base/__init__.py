"""What every package may use: errors, records, JSON data, lazy exports, references, text with positions, secrets."""
