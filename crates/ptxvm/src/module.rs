//! PTX text, compiled.

use std::path::Path;
use std::sync::Arc;

use check::module::Function;
use diag::{Diagnostic, SourceFile};

use crate::Error;

/// A PTX module that passed the checker and is ready to be loaded on a [`Device`](crate::Device).
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Module {
    source: Arc<SourceFile>,
    program: Arc<ir::Program>,
    warnings: Arc<[Diagnostic]>,
}

impl Module {
    /// Compiles PTX from text.
    ///
    /// # Errors
    /// [`Error::Bad`] with every error of the text.
    pub fn from_ptx(text: &str) -> Result<Module, Error> {
        Module::compile(SourceFile::new("<ptx>", text), &check::Options::default())
    }

    /// Compiles a PTX file.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::Bad`] with every error of the text.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Module, Error> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| Error::Io { path: path.to_owned(), error })?;
        let source = SourceFile::from_bytes(path.display().to_string(), bytes);
        Module::compile(source, &check::Options::default())
    }

    /// Compiles a source file with options.
    ///
    /// # Errors
    /// [`Error::Bad`] with every error of the text.
    pub fn compile(source: SourceFile, options: &check::Options) -> Result<Module, Error> {
        let source = Arc::new(source);
        let (tree, parsed) = syntax::parse(&source);
        let (module, diagnostics) = check::check(&source, &tree, parsed, options);
        let Some(module) = module else { return Err(Error::Bad { source, diagnostics }) };
        Ok(Module { source, program: Arc::new(ir::lower(module)), warnings: diagnostics.into() })
    }

    /// The source text and its name.
    pub fn source(&self) -> &Arc<SourceFile> {
        &self.source
    }

    /// The lowered code; its `Display` is what `ptxvm check --emit ir` prints.
    pub fn program(&self) -> &Arc<ir::Program> {
        &self.program
    }

    /// What is worth knowing about the text although it was accepted.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The kernels (`.entry`) that have a body, in source order.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.program.module.functions.iter().filter(|function| function.is_entry && function.body.is_some())
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// [`Error::NoSuchName`] with the names that there are.
    pub fn kernel(&self, name: &str) -> Result<&Function, Error> {
        self.kernels().find(|kernel| kernel.name == name).ok_or_else(|| Error::NoSuchName {
            what: "kernel",
            name: name.to_owned(),
            available: self.kernels().map(|kernel| kernel.name.clone()).collect(),
        })
    }
}
