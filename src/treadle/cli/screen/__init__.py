"""Output: tables, JSON, progress bars, problems of definitions with their source lines. Knows no verb and no run."""
