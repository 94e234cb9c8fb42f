// Cargo requires a source file in each crate. Nothing here is compiled.
