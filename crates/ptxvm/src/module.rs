//! PTX text, compiled.

use std::path::Path;
use std::sync::Arc;

use check::module::Function;
use diag::{Code, Diagnostic, SourceFile, Span};

use ir::Options as LowerOptions;
use tools::{Tool, Tools};

use crate::{Error, Named};

/// A PTX module that passed the checker and is ready to be loaded on a [`Device`](crate::Device).
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Module {
    source: Arc<SourceFile>,
    /// The modules that it was linked from; empty if it is one file.
    parts: Arc<[Module]>,
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
        let bytes = std::fs::read(path)
            .map_err(|error| Error::Io { path: path.to_owned(), error: Arc::new(error) })?;
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
        let program = Arc::new(ir::lower(module, &ir::Options::ALL));
        Ok(Module { source, parts: Arc::default(), program, warnings: diagnostics.into() })
    }

    /// Links modules. As NVIDIA's linker does, it resolves an `.extern` declaration of one module to a `.visible` (or
    /// `.weak`, `.common`) definition of another. Names without a linking directive stay private to their module.
    /// Names that no module defines stay undefined.
    ///
    /// The warnings of the modules stay with them.
    ///
    /// # Errors
    /// [`Error::Bad`] about the first module that does not fit those before it: two definitions of a name, or
    /// declarations that differ.
    pub fn link(&self, others: &[Module]) -> Result<Module, Error> {
        let parts: Vec<Module> =
            std::iter::once(self).chain(others).flat_map(Module::parts).cloned().collect();
        let bad =
            |part: usize, diagnostics| Error::Bad { source: Arc::clone(&parts[part].source), diagnostics };
        let mut linked = Vec::new();
        let mut offset = 0u32;
        for (i, part) in parts.iter().enumerate() {
            linked.push(check::Part { module: &part.program.module, source: &part.source, offset });
            offset = offset.checked_add(part.source_bytes()).ok_or_else(|| {
                let message = "the files have more than 4 GiB together";
                bad(i, vec![Diagnostic::error(Code::FileTooLarge, Span::at(0), message)])
            })?;
        }
        let module = check::link(&linked).map_err(|errors| {
            let first = errors.iter().map(|(part, _)| *part).min().unwrap_or(0);
            bad(
                first,
                errors.into_iter().filter(|(part, _)| *part == first).map(|(_, error)| error).collect(),
            )
        })?;
        let (source, program) =
            (Arc::clone(&parts[0].source), Arc::new(ir::lower(module, &ir::Options::ALL)));
        Ok(Module { source, parts: parts.into(), program, warnings: Arc::default() })
    }

    /// The same module, lowered without some passes. It computes the same. This helps to find the pass that has a
    /// bug, and to look at registers while a kernel runs.
    #[must_use]
    pub fn lowered_with(&self, options: &LowerOptions) -> Module {
        Module { program: Arc::new(ir::lower(self.program.module.clone(), options)), ..self.clone() }
    }

    /// The same module, lowered as these tools need it. Initcheck sees reads of unwritten registers only if lowering
    /// neither hoists operations into the prologue nor propagates copies.
    #[must_use]
    pub fn for_tools(self, tools: Tools) -> Module {
        let options = LowerOptions { copies: false, prologue: false, ..LowerOptions::ALL };
        if tools.has(Tool::Initcheck) { self.lowered_with(&options) } else { self }
    }

    /// The single-file modules that it consists of.
    fn parts(&self) -> &[Module] {
        if self.parts.is_empty() { std::slice::from_ref(self) } else { &self.parts }
    }

    /// The range of offsets that its source takes in a linked module, in bytes.
    fn source_bytes(&self) -> u32 {
        self.source.text().len() as u32 + 1
    }

    /// The source text and its name; the first source of a linked module.
    pub fn source(&self) -> &Arc<SourceFile> {
        &self.source
    }

    /// The sources of a linked module, or its only one.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<SourceFile>> {
        self.parts().iter().map(|part| &part.source)
    }

    /// The index in [`Module::sources`] of the source that contains a span, and the span in that source. The offsets
    /// of a linked module count on from source to source.
    pub fn locate(&self, span: Span) -> (usize, Span) {
        let mut offset = 0;
        let mut place = (0, span);
        for (i, part) in self.parts().iter().enumerate() {
            if span.start < offset {
                break;
            }
            place = (i, Span::new(span.start - offset, span.end - offset));
            offset += part.source_bytes();
        }
        place
    }

    /// The lowered code; its `Display` is what `ptxvm check --emit ir` prints.
    pub fn program(&self) -> &Arc<ir::Program> {
        &self.program
    }

    /// The diagnostics of a text that was accepted.
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
    /// [`Error::NoSuchName`] with the names that the module has.
    pub fn kernel(&self, name: &str) -> Result<&Function, Error> {
        self.kernels().find(|kernel| kernel.name == name).ok_or_else(|| self.no_such_kernel(name))
    }

    /// The error for a kernel name that the module does not have.
    pub(crate) fn no_such_kernel(&self, name: &str) -> Error {
        Error::NoSuchName {
            what: Named::Kernel,
            name: name.to_owned(),
            available: self.kernels().map(|kernel| kernel.name.clone()).collect(),
        }
    }
}
