//! `.version` and `.target`, and the gates of the table's rows and modifiers.

use std::fmt;

/// A PTX ISA version, as `.version` declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The part before the dot.
    pub major: u8,
    /// The part after the dot.
    pub minor: u8,
}

impl Version {
    /// The oldest version.
    pub const MIN: Version = Version::new(1, 0);
    /// The newest version that this table describes.
    pub const MAX: Version = Version::new(9, 5);

    /// Version `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Version {
        Version { major, minor }
    }

    /// Every version that was published, oldest first.
    pub fn all() -> impl Iterator<Item = Version> {
        const LAST_MINOR: [u8; 9] = [5, 3, 2, 3, 1, 5, 8, 8, 5];
        (1u8..=9)
            .zip(LAST_MINOR)
            .flat_map(|(major, last)| (0..=last).map(move |minor| Version { major, minor }))
    }

    /// Reads `8.6`.
    pub fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.split_once('.')?;
        Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The letter after a target's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suffix {
    /// `sm_90`: features that every later target has too.
    None,
    /// `sm_100f`: also the features of its family.
    Family,
    /// `sm_100a`: also features of this architecture only.
    Architecture,
}

/// A `.target` architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// 53 of `sm_53`.
    pub number: u16,
    /// `a`, `f` or nothing.
    pub suffix: Suffix,
}

impl Target {
    /// A target without a suffix.
    pub const fn sm(number: u16) -> Target {
        Target { number, suffix: Suffix::None }
    }

    /// A target with a suffix.
    pub const fn new(number: u16, suffix: Suffix) -> Target {
        Target { number, suffix }
    }

    /// Every known target, oldest first.
    pub fn all() -> impl Iterator<Item = Target> {
        const PLAIN: [u16; 31] = [
            10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 82, 86, 87, 88,
            89, 90, 100, 101, 103, 107, 110,
        ];
        const LAST: [u16; 2] = [120, 121];
        PLAIN.into_iter().chain(LAST).flat_map(|number| {
            let suffixes: &[Suffix] = match number {
                0..90 => &[Suffix::None],
                90 => &[Suffix::None, Suffix::Architecture],
                _ => &[Suffix::None, Suffix::Family, Suffix::Architecture],
            };
            suffixes.iter().map(move |&suffix| Target { number, suffix })
        })
    }

    /// Reads `sm_90a`; `None` if no such target exists.
    pub fn parse(text: &str) -> Option<Target> {
        Target::all().find(|target| target.to_string() == text)
    }

    /// The first `.version` that knows this target.
    pub fn first_version(self) -> Version {
        let (major, minor) = match (self.number, self.suffix) {
            (10 | 11, _) => (1, 0),
            (12 | 13, _) => (1, 2),
            (20 | 21, _) => (2, 0),
            (30, _) => (3, 0),
            (35, _) => (3, 1),
            (32 | 50, _) => (4, 0),
            (37 | 52, _) => (4, 1),
            (53, _) => (4, 2),
            (60..=62, _) => (5, 0),
            (70, _) => (5, 1),
            (72, _) => (6, 1),
            (82, _) => (6, 2),
            (75, _) => (6, 3),
            (80, _) => (7, 0),
            (86, _) => (7, 1),
            (87, _) => (7, 4),
            (89, _) | (90, Suffix::None) => (7, 8),
            (90, _) => (8, 0),
            (100 | 101, Suffix::None | Suffix::Architecture) => (8, 6),
            (120, Suffix::None | Suffix::Architecture) => (8, 7),
            (100 | 101 | 103 | 120 | 121, _) => (8, 8),
            (88 | 110, _) => (9, 0),
            (107, _) => (9, 4),
            _ => (1, 0),
        };
        Version::new(major, minor)
    }

    /// The first member of this target's family (`sm_103` belongs to that of `sm_100`).
    fn family(self) -> u16 {
        match self.number {
            100..110 => 100,
            120..130 => 120,
            number => number,
        }
    }

    /// Does a target `self` have the features that `feature` denotes? `sm_90` denotes features of that target and all
    /// later ones. `sm_100f` denotes features of `sm_100` and of later members of its family, if those have a suffix.
    /// `sm_100a` denotes features of that target only.
    pub fn has(self, feature: Target) -> bool {
        match feature.suffix {
            Suffix::None => self.number >= feature.number,
            Suffix::Architecture => self == feature,
            Suffix::Family => {
                self.suffix != Suffix::None
                    && self.family() == feature.family()
                    && self.number >= feature.number
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Architecture => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

const V6_0: Version = Version::new(6, 0);
const V5_1: Version = Version::new(5, 1);

/// What a gate requires of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// This `.version` or later.
    Version(Version),
    /// A `.target` that has one of these features.
    Target(&'static [Target]),
    /// A `.version` before this one, or a target older than this one (`sm_0`: no target is), because the form was
    /// removed.
    Until(Version, Target),
    /// The first target from this `.version` on, the second target before: support for an older target was added.
    Since(Version, Target, Target),
}

/// When ptxas reports a gate or an error in modifiers, relative to the other errors of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// With the modifiers and types, before the form is known.
    Token,
    /// With modifiers that no form of the name takes.
    Untaken,
    /// Once types and operands fit, before the requirements of the instruction as a whole.
    Early,
    /// With the requirements of the instruction as a whole.
    Form,
    /// After these.
    AfterForm,
    /// With illegal modifiers (`.ftz`).
    Modifier,
    /// With numbers of dimensions and levels of copies.
    Dimension,
    /// With the rules of the opcode on combinations of modifiers.
    Combined,
    /// Just behind these.
    Range,
    /// With the state spaces of copies.
    Space,
    /// With roundings of sums that these do not have.
    SumRounding,
    /// Just before shapes that the instruction does not take.
    BeforeShape,
    /// With shapes that the instruction does not take.
    Shape,
    /// After most modifiers that the instruction does not take.
    AfterModifiers,
    /// Once ptxas knows that the result is kept.
    Result,
    /// With `.sat` on integers.
    Saturation,
    /// With most missing modifiers.
    Missing,
    /// With the comparison operator.
    Comparison,
    /// With the kind of an access.
    Kind,
    /// With a missing rounding.
    MissingRounding,
    /// With roundings that the instruction does not take. ptxas uses their message for this gate.
    Rounding,
    /// After the comparison operator was checked.
    Late,
    /// With a missing Boolean operator.
    Boolean,
}

impl Stage {
    /// The stages, by their names in the table.
    pub const NAMES: [(&'static str, Stage); 23] = [
        ("token", Stage::Token),
        ("untaken", Stage::Untaken),
        ("early", Stage::Early),
        ("form", Stage::Form),
        ("after-form", Stage::AfterForm),
        ("modifier", Stage::Modifier),
        ("dimension", Stage::Dimension),
        ("combined", Stage::Combined),
        ("range", Stage::Range),
        ("space", Stage::Space),
        ("sum-rounding", Stage::SumRounding),
        ("before-shape", Stage::BeforeShape),
        ("shape", Stage::Shape),
        ("after-modifiers", Stage::AfterModifiers),
        ("result", Stage::Result),
        ("saturation", Stage::Saturation),
        ("missing", Stage::Missing),
        ("comparison", Stage::Comparison),
        ("kind", Stage::Kind),
        ("missing-rounding", Stage::MissingRounding),
        ("rounding", Stage::Rounding),
        ("late", Stage::Late),
        ("boolean", Stage::Boolean),
    ];
}

/// One requirement of a form or modifier on `.version` or `.target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The subject of the requirement, as the message names it: `Feature '.bf16'`.
    pub subject: &'static str,
    /// The requirement.
    pub requires: Requirement,
    /// Its position among the errors of one line.
    pub stage: Stage,
}

impl Gate {
    /// Does the gate let a module of this version and target pass?
    pub fn permits(&self, version: Version, target: Target) -> bool {
        match self.requires {
            // Features of 6.0 are also in 5.1, a version that ptxas knows and that no toolkit shipped with.
            Requirement::Version(needed) => version >= needed || (needed, version) == (V6_0, V5_1),
            Requirement::Target(features) => features.iter().any(|&feature| target.has(feature)),
            Requirement::Until(last_version, last_target) => {
                version < last_version || !target.has(last_target)
            }
            Requirement::Since(first, new, old) => target.has(if version >= first { new } else { old }),
        }
    }

    /// The modifier that the gate belongs to, if any.
    pub fn modifier(&self) -> Option<&'static str> {
        self.subject.split('\'').nth(1)?.strip_prefix('.')
    }

    /// What would satisfy the gate, if the message does not mention it.
    pub fn help(&self) -> Option<String> {
        match self.requires {
            Requirement::Target(features) if !matches!(features, [Target { suffix: Suffix::None, .. }]) => {
                let names: Vec<String> = features.iter().map(Target::to_string).collect();
                Some(format!("it needs .target {}", names.join(" or ")))
            }
            _ => None,
        }
    }

    /// The message of ptxas for a module of this version and target that the gate rejects.
    pub fn message(&self, version: Version, target: Target) -> String {
        let subject = self.subject;
        match self.requires {
            Requirement::Version(needed) => {
                format!("{subject} requires PTX ISA .version {needed} or later")
            }
            Requirement::Target(_) if subject.starts_with("Illegal") => {
                format!("{subject}, for arch '{target}'")
            }
            Requirement::Target([Target { suffix: Suffix::None, number }]) => {
                format!("{subject} requires .target sm_{number} or higher")
            }
            Requirement::Target(_) => format!("{subject} not supported on .target '{target}'"),
            Requirement::Until(end, last) => {
                format!("{subject} is not supported on .target {last} and higher from PTX ISA version {end}")
            }
            Requirement::Since(first, new, old) => {
                format!("{subject} requires .target {} or higher", if version >= first { new } else { old })
            }
        }
    }
}

/// The first version that passes the gates, and the first target that passes with it.
pub fn since(gates: &[Gate]) -> Option<(Version, Target)> {
    let permits = |version, target: Target| {
        version >= target.first_version() && gates.iter().all(|gate| gate.permits(version, target))
    };
    Version::all().find_map(|version| {
        Target::all().find(|&target| permits(version, target)).map(|target| (version, target))
    })
}

/// `PTX 4.2, sm_53`
pub fn since_text(gates: &[Gate]) -> String {
    since(gates).map_or_else(|| "never".to_owned(), |(version, target)| format!("PTX {version}, {target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_target_came_later() {
        let [new, old] = [89, 90].map(Target::sm);
        let requires = Requirement::Since(Version::new(8, 1), new, old);
        let gate = Gate { subject: "Feature 'cvt'", requires, stage: Stage::Form };
        assert!(!gate.permits(Version::new(8, 0), new) && gate.permits(Version::new(8, 0), old));
        assert!(gate.permits(Version::new(8, 1), new) && !gate.permits(Version::new(8, 1), Target::sm(86)));
    }
}
