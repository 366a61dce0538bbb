"""The arithmetic of certificates; `kinds.certificate` says what they are."""
