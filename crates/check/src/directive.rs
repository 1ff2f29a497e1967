//! `.version`, `.target`, `.address_size` and the performance-tuning directives
//! (PTX ISA, "PTX Module Directives", "Performance-Tuning Directives", "Cluster Dimension Directives").

use diag::{Code, Fix, Help};
use isa::{Target, Version};
use syntax::Tree;
use syntax::tree::{Directive, Item, Operand};

use crate::checker::Checker;
use crate::literal::fold_integer;
use crate::module::LaunchBounds;

/// Greatest numbers of registers, and of control-flow registers, that a function can preserve (sm_80 to sm_121).
const MOST_PRESERVED: u32 = 255;
const MOST_PRESERVED_CONTROL: u32 = 11;
/// Registers after the preserved ones that a call needs; the return address is in the last two.
const RETURN_ADDRESS: u32 = 16;

impl<'a> Checker<'a> {
    /// Checks the directives that begin a module, and returns the items after them.
    pub(crate) fn header<'t>(&mut self, tree: &'t Tree<'a>) -> &'t [Item<'a>] {
        let mut rest = tree.items.as_slice();
        match take(&mut rest, "version") {
            Some(node) => self.version_directive(node),
            // The parser has reported this.
            None => self.headless = true,
        }
        let mut target_span = None;
        match take(&mut rest, "target") {
            Some(node) => {
                self.target_directive(node);
                target_span = Some(node.span);
            }
            None => self.headless = true,
        }
        while let Some(node) = take(&mut rest, "target") {
            self.target_directive(node);
            target_span = Some(node.span);
        }
        if let Some(target) = self.options.target {
            self.target = target;
        }
        if let Some(node) = take(&mut rest, "address_size") {
            self.address_size_directive(node);
        }
        let has_code = rest.iter().any(|item| matches!(item, Item::Function(_) | Item::Variable(_)));
        if let Some(span) = target_span.filter(|_| has_code)
            && self.knows_target()
            && self.version < self.target.first_version()
        {
            let message = format!("PTX .version {} does not support .target {}", self.version, self.target);
            let first = self.target.first_version();
            let help = format!("{} needs `.version {first}` or later", self.target);
            let fix = self.version_fix(first);
            self.sink.last_error(Code::TargetTooNew, span, message).help(help).fixes(fix);
        }
        rest
    }

    fn version_directive(&mut self, node: &Directive<'a>) {
        let Some(Operand::Literal(literal)) = node.arguments.first() else { return };
        self.header.0 = Some(literal.span);
        match Version::parse(literal.text).filter(|&version| Version::all().any(|v| v == version)) {
            Some(version) => self.version = version,
            None => {
                let message =
                    format!("Unsupported .version {}; current version is '{}'", literal.text, Version::MAX);
                let help = "published versions are 1.0-1.5, 2.0-2.3, 3.0-3.2, 4.0-4.3, 5.0-5.1, 6.0-6.5, 7.0-7.8, \
                            8.0-8.8 and 9.0-9.5";
                self.sink.error(Code::UnsupportedVersion, literal.span, message).help(help);
            }
        }
    }

    fn target_directive(&mut self, node: &Directive<'a>) {
        let mut architecture: Option<Target> = None;
        let mut texture_mode: Option<&str> = None;
        for argument in &node.arguments {
            let Operand::Name(name) = argument else { continue };
            let plain = name.text.strip_prefix("compute_").map(|number| format!("sm_{number}"));
            match name.text {
                "texmode_unified" | "texmode_independent" | "texmode_raw" => {
                    if texture_mode.is_some_and(|mode| mode != name.text) {
                        let message = format!("Conflicting .target option '{}'", name.text);
                        self.sink.error(Code::ConflictingTarget, name.span, message);
                    }
                    texture_mode = Some(name.text);
                }
                "debug" => {
                    self.need(name.span, "debug", Some(Version::new(3, 0)), None);
                    self.debug = Some(name.span);
                }
                "map_f64_to_f32" => {
                    if architecture.is_some_and(|target| target.number >= 13) {
                        let message = "Directive map_f64_to_f32 is not supported with SM 1.3 or higher";
                        self.sink.error(Code::ConflictingTarget, name.span, message);
                    }
                }
                text => match Target::parse(plain.as_deref().unwrap_or(text)) {
                    Some(target) => {
                        architecture = Some(target);
                        self.header.1 = Some(name.span);
                    }
                    None => {
                        let known: Vec<String> = Target::all().map(|t| t.to_string()).collect();
                        let near = diag::nearest(text, known.iter().map(String::as_str));
                        let help = near.map(Help::did_you_mean);
                        let message = format!("Unsupported .target '{text}'");
                        self.sink.error(Code::UnsupportedTarget, name.span, message).maybe_help(help);
                        return;
                    }
                },
            }
        }
        self.independent_samplers = texture_mode == Some("texmode_independent");
        match architecture {
            Some(target) => self.target = target,
            None => {
                let message =
                    format!("Target architecture not defined at start of file '{}'", self.source.name());
                self.sink
                    .error(Code::MissingTarget, node.span, message)
                    .help("name an architecture: `.target sm_90`");
            }
        }
    }

    fn address_size_directive(&mut self, node: &Directive<'a>) {
        self.says_address_size = true;
        let argument = node.arguments.first();
        let span = argument.map_or(node.span, Operand::span);
        if self.version < Version::new(2, 3) {
            let message = "Feature '.address_size directive' requires PTX ISA .version 2.3 or later";
            let fix = self.version_fix(Version::new(2, 3));
            self.need_version(node.name.span, message.into(), fix);
        }
        match argument.and_then(|a| fold_integer(a, &mut self.sink)) {
            Some(size @ (32 | 64)) => self.address_size = size as u32,
            _ => {
                let message = "Illegal value for .address_size directive (must be 32 or 64)";
                let fix = argument.map(|_| Fix { span, text: "64".into() });
                self.sink
                    .error(Code::IllegalAddressSize, span, message)
                    .help("write `.address_size 64`")
                    .fixes(fix);
            }
        }
    }

    /// Checks a directive after the header.
    pub(crate) fn late_directive(&mut self, node: &Directive<'a>) {
        let help = match node.name.text {
            "version" | "target" | "address_size" => {
                "`.version`, `.target` and `.address_size` open the file, once each and in this order"
            }
            "pragma" => return self.pragma(node, false),
            _ => return,
        };
        let word = match (node.name.text, node.arguments.first()) {
            // ptxas reads `.version 9.0` as one word.
            ("version", Some(Operand::Literal(number))) => format!(".version {}", number.text),
            (word, _) => format!(".{word}"),
        };
        let message = format!("Parsing error near '{word}': syntax error");
        self.sink.error(Code::Misplaced, node.name.span, message).help(help);
    }

    /// The bounds on launches in the directives of a function, and whether it is one that does not return.
    pub(crate) fn launch_bounds(
        &mut self,
        directives: &[Directive<'a>],
        is_entry: bool,
    ) -> (LaunchBounds, bool) {
        let mut bounds = LaunchBounds::default();
        let mut noreturn = false;
        for node in directives {
            if belongs_elsewhere(node.name.text, is_entry) {
                self.refuse_directive(node, is_entry);
                continue;
            }
            noreturn |= node.name.text == "noreturn";
            self.launch_bound(node, &mut bounds);
            self.need_for_clusters(node, directives);
        }
        self.conflicting_bounds(directives);
        if let Some(node) = named(directives, "minnctapersm").or_else(|| named(directives, "maxnctapersm"))
            && named(directives, "maxntid").or_else(|| named(directives, "reqntid")).is_none()
            && is_entry
        {
            let message = ".minnctapersm is ignored when neither .maxntid nor .reqntid is specified.";
            self.sink.warning(Code::IgnoredDirective, node.name.span, message);
        }
        (bounds, noreturn)
    }

    /// Reports a directive that this kind of function does not have.
    fn refuse_directive(&mut self, node: &Directive<'a>, is_entry: bool) {
        let name = node.name.text;
        let kind = if is_entry { "a kernel" } else { "a function that is no kernel" };
        let message = format!("Parsing error near '.{name}': syntax error");
        let help = format!("`.{name}` has no meaning for {kind}");
        self.sink.error(Code::Misplaced, node.name.span, message).help(help);
    }

    /// Takes the bound of one directive.
    fn launch_bound(&mut self, node: &Directive<'a>, bounds: &mut LaunchBounds) {
        let span = node.name.span;
        match node.name.text {
            "maxntid" => {
                let extents = self.extents(node, 1);
                bounds.max_threads = Some(extents.iter().map(|&e| u64::from(e)).product());
            }
            "reqntid" => {
                self.need(span, ".reqntid directive", Some(Version::new(2, 1)), None);
                bounds.required = Some(self.extents(node, 1));
            }
            "maxnreg" | "minnctapersm" => {
                self.extents(node, 1);
            }
            "local_maxnreg" => self.need(span, ".local_maxnreg", Some(Version::new(8, 8)), None),
            "abi_preserve" | "abi_preserve_control" => self.abi_preserve(node),
            "maxclusterrank" => bounds.max_cluster = Some(self.extents(node, 1)[0]),
            "minperctamemory" => {
                self.need(span, ".minperctamemory", Some(Version::new(9, 4)), Some(Target::sm(80)));
                let least = node.arguments.first().and_then(|argument| self.small_integer(argument));
                bounds.per_cta_memory = least.unwrap_or(0).into();
            }
            "explicitcluster" => bounds.explicit_cluster = true,
            "blocksareclusters" => bounds.blocks_are_clusters = true,
            "maxnctapersm" if self.version >= Version::new(2, 1) => {
                let message =
                    "Deprecated feature: '.maxnctapersm directive' not supported as of PTX version 2.1";
                self.sink
                    .error(Code::Deprecated, span, message)
                    .help(Help { text: "use `.minnctapersm`".into(), instead: Some(".minnctapersm".into()) });
            }
            "reqnctapercluster" => bounds.required_cluster = Some(self.extents(node, 1)),
            "pragma" => self.pragma(node, false),
            _ => {}
        }
    }

    /// Reports what a directive on clusters requires of the module and of the other directives.
    fn need_for_clusters(&mut self, node: &Directive<'a>, directives: &[Directive<'a>]) {
        let (name, span) = (node.name.text, node.name.span);
        match name {
            "blocksareclusters" => {
                self.need(span, ".blocksareclusters", None, Some(Target::sm(90)));
                let has = |name| named(directives, name).is_some();
                if !has("reqntid") || !has("reqnctapercluster") {
                    let message = ".reqntid and .reqnctapercluster directive(s) required for directive '.blocksareclusters'";
                    self.sink.error(Code::ConflictingDirectives, span, message);
                }
            }
            "reqnctapercluster" | "explicitcluster" | "maxclusterrank" => {
                self.need(span, &format!(".{name}"), Some(Version::new(7, 8)), Some(Target::sm(90)));
            }
            _ => {}
        }
    }

    /// Reports bounds that exclude each other.
    fn conflicting_bounds(&mut self, directives: &[Directive<'a>]) {
        for (first, second) in [("maxntid", "reqntid"), ("reqnctapercluster", "maxclusterrank")] {
            if let (Some(a), Some(b)) = (named(directives, first), named(directives, second)) {
                let message =
                    format!("Conflicting directives: .{first} and .{second} cannot both be specified");
                self.sink
                    .error(Code::ConflictingDirectives, b.name.span, message)
                    .label(a.name.span, "the other one");
            }
        }
    }

    /// Checks `.abi_preserve N` and `.abi_preserve_control N`: the number of registers that a function preserves.
    pub(crate) fn abi_preserve(&mut self, node: &Directive<'a>) {
        let name = node.name.text;
        let most = if name == "abi_preserve" { MOST_PRESERVED } else { MOST_PRESERVED_CONTROL };
        self.need(node.name.span, &format!(".{name}"), Some(Version::new(9, 0)), Some(Target::sm(80)));
        let Some(argument) = node.arguments.first() else { return };
        let Some(count) = self.small_integer(argument) else { return };
        if !self.target.has(Target::sm(80)) {
            return;
        }
        if count > most {
            let message = format!(".{name} {count} is invalid for {}", self.target);
            let help = format!("a function preserves {most} registers at most");
            self.sink.error(Code::OutOfRange, argument.span(), message).help(help);
        } else if name == "abi_preserve" && count > MOST_PRESERVED - RETURN_ADDRESS {
            let register = (count + RETURN_ADDRESS - 2) & !1;
            let message = format!("retaddr_reg {register} is invalid for {}", self.target);
            let help = format!("preserve {} registers at most", MOST_PRESERVED - RETURN_ADDRESS);
            self.sink.last_error(Code::OutOfRange, argument.span(), message).help(help);
        }
    }

    /// Up to three positive numbers; missing ones are `default`.
    fn extents(&mut self, node: &Directive<'a>, default: u32) -> [u32; 3] {
        let mut extents = [default; 3];
        for (extent, argument) in extents.iter_mut().zip(&node.arguments) {
            *extent = self.small_integer(argument).unwrap_or(0);
            // An extent of 0 has no effect for clusters.
            if *extent == 0 && node.name.text.contains("cluster") {
                *extent = default;
            } else if *extent == 0 {
                let message = format!("Positive non-zero value expected for {}", node.name.text);
                self.sink.error(Code::NotPositive, argument.span(), message);
                *extent = default;
            }
        }
        if let Some(extra) = node.arguments.get(3) {
            let message = "Parsing error near ',': syntax error";
            self.sink
                .error(Code::TooManyArguments, extra.span(), message)
                .help("there are at most three extents");
        }
        extents
    }

    /// A constant that must fit 32 bits.
    pub(crate) fn small_integer(&mut self, tree: &Operand<'a>) -> Option<u32> {
        let errors_before = self.sink.errors();
        let value = fold_integer(tree, &mut self.sink)?;
        if self.sink.errors() > errors_before {
            return Some(u32::MAX);
        }
        if u32::try_from(value).is_err() {
            self.sink.error(Code::ConstantOverflow, tree.span(), "Constant overflow").help("at most 32 bits");
        }
        u32::try_from(value).ok()
    }

    /// N of `.align N`; `None` if it is illegal.
    pub(crate) fn alignment(&mut self, tree: &Operand<'a>) -> Option<u64> {
        let value = u64::from(self.small_integer(tree).unwrap_or(0));
        if value.is_power_of_two() {
            return Some(value);
        }
        let help = match value.checked_next_power_of_two() {
            Some(next) if value > 0 => format!("write {} or {next}", next / 2),
            _ => "write 1, 2, 4, 8, 16, ...".to_owned(),
        };
        self.sink.error(Code::IllegalAlignment, tree.span(), "Alignment must be a power of two").help(help);
        None
    }
}

/// The first directive of this name.
fn named<'t, 'a>(directives: &'t [Directive<'a>], name: &str) -> Option<&'t Directive<'a>> {
    directives.iter().find(|node| node.name.text == name)
}

/// Is this a directive of the other kind of function: of a kernel, or of a function that is none?
fn belongs_elsewhere(name: &str, is_entry: bool) -> bool {
    match name {
        "maxntid" | "reqntid" | "minnctapersm" | "maxnctapersm" | "maxnreg" | "minperctamemory"
        | "reqnctapercluster" | "explicitcluster" | "maxclusterrank" | "blocksareclusters" => !is_entry,
        "noreturn" => is_entry,
        _ => false,
    }
}

/// Removes the directive `name` from the front.
fn take<'t, 'a>(rest: &mut &'t [Item<'a>], name: &str) -> Option<&'t Directive<'a>> {
    let [Item::Directive(node), tail @ ..] = rest else { return None };
    if node.name.text != name {
        return None;
    }
    *rest = tail;
    Some(node)
}
