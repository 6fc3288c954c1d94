"""Methods that several questions share: arithmetic on tables, without a question of their own."""
