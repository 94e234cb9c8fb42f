// Cargo wants a source file for each crate; nothing here is compiled.
