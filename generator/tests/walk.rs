//! The walk through what optimisations join leaves no instruction out, and some of its kernels run as an ordinary test.

use std::collections::BTreeSet;

use generator::{run, walk};
use isa::enumerate::spellings;
use isa::{Action, Effect, FORMS, FormId, Opcode};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// One of so many kernels of the walk is run.
const EVERY: usize = 200;

#[test]
fn every_form_stands_in_the_middle() {
    let forms: BTreeSet<FormId> = walk::MIDDLES.iter().map(|(middle, _)| middle.form()).collect();
    // What `istypep` asks of needs a texture, and `st.async` is not done when the thread goes on: neighbourhoods have neither.
    let is_async = |index| {
        let first = spellings(FormId(index as u16)).next();
        first.is_some_and(|spelling| spelling.modifiers.contains(&"async"))
    };
    let rows = FORMS.iter().enumerate().filter(|(index, form)| match form.action {
        Action::Pure(_) => form.opcode != Opcode::Istypep,
        Action::Effect(Effect::Ld | Effect::St) => !is_async(*index),
        _ => false,
    });
    let missing: Vec<_> = rows
        .filter(|(index, _)| !forms.contains(&FormId(*index as u16)))
        .map(|(index, form)| format!("{} (row {index})", form.opcode.name()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn engines_agree() {
    let kernels: Vec<_> = (0..walk::len()).step_by(EVERY).collect();
    let failure = kernels.into_par_iter().find_map_any(|index| Some((index, run(&walk::kernel(index))?)));
    if let Some((index, failure)) = failure {
        panic!("{}", failure.text(&format!("Walk {index}")));
    }
}
