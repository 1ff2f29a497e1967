//! TODO: written in this session.
#![forbid(unsafe_code)]
