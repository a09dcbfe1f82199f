"""What others say of pairs, as evidence: scored candidates and features of pairs."""
