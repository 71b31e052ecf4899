//! Placeholder line replaced in the next commits.
