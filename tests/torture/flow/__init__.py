"""Four engines on one PostgreSQL, and workflows that let one run live at a time: engines are killed and stopped while a
thousand starts wait for their turn (6.7)."""
