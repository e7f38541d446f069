"""Access to a store from outside: keys, and what each may do. They are kept in the store, so that every node knows
them."""
