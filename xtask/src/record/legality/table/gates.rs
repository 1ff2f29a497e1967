//! Spellings at versions and targets around those that they need, and at random ones.

use std::collections::BTreeSet;

use fastrand::Rng;
use isa::{Requirement, Target, Version};

use super::seeds::{home, rows, seed, some_spellings};
use super::{Kind, Point, Question, targets};

/// So many spellings of a row are asked about.
const SPELLINGS: usize = 14;
/// So many points each.
const POINTS: usize = 18;

pub fn all(rng: &mut Rng) -> Vec<Question> {
    let (versions, targets): (Vec<Version>, Vec<Target>) = (Version::all().collect(), targets().collect());
    let mut all = Vec::new();
    for form in rows() {
        for spelling in some_spellings(form, SPELLINGS, rng) {
            let home = home(&spelling);
            let mut points = BTreeSet::new();
            for gate in form.gates(&spelling.picks) {
                match gate.requires {
                    Requirement::Version(needed) => points.extend(around(needed, &versions, home.1)),
                    Requirement::Target(features) => {
                        for &feature in features {
                            points.extend(near(feature, &targets).map(|target| (home.0, target)));
                        }
                    }
                    Requirement::Until(version, target) => {
                        points.extend(around(version, &versions, target));
                        points.extend(near(target, &targets).map(|target| (version, target)));
                    }
                    Requirement::Since(version, new, old) => {
                        for target in [new, old] {
                            points.extend(around(version, &versions, target));
                            points.extend(near(target, &targets).map(|target| (version, target)));
                        }
                    }
                }
            }
            let mut points: Vec<Point> = points.into_iter().collect();
            rng.shuffle(&mut points);
            points.truncate(POINTS - 4);
            while points.len() < POINTS {
                points.push((versions[rng.usize(..versions.len())], targets[rng.usize(..targets.len())]));
            }
            let text = seed(&spelling, rng);
            all.extend(points.into_iter().map(|at| Question::line(Kind::Gate, text.clone(), at)));
        }
    }
    all
}

/// One below, at, one above.
fn around(version: Version, versions: &[Version], target: Target) -> impl Iterator<Item = Point> {
    let at = versions.iter().position(|&v| v == version).unwrap_or(0);
    versions[at.saturating_sub(1)..(at + 2).min(versions.len())].iter().map(move |&v| (v, target))
}

/// The number below, itself and the number above, with all suffixes.
fn near(target: Target, targets: &[Target]) -> impl Iterator<Item = Target> {
    let mut numbers: Vec<u16> = targets.iter().map(|target| target.number).collect();
    numbers.dedup();
    let at = numbers.iter().position(|&number| number >= target.number).unwrap_or(0);
    let near = numbers[at.saturating_sub(1)..(at + 2).min(numbers.len())].to_vec();
    targets.iter().copied().filter(move |target| near.contains(&target.number))
}
