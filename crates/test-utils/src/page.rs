//! Pages of docs/ that tests write from declarations.

/// A list of symbols, in a sentence of a page.
pub fn symbols<'a>(symbols: impl IntoIterator<Item = &'a str>) -> String {
    symbols.into_iter().map(|symbol| format!("`{symbol}`")).collect::<Vec<_>>().join(", ")
}

/// Compares a page of docs/ with what it should say. With `PTXVM_WRITE_DOCS` it is written first.
///
/// # Panics
/// When they differ.
pub fn holds(name: &str, page: &str) {
    let path = crate::root().join("docs").join(name);
    if std::env::var_os("PTXVM_WRITE_DOCS").is_some() {
        std::fs::write(&path, page).expect("a page that can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/{name} is not what the functions' declarations say: see the top of this test"
    );
}
