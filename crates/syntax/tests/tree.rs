//! What the parts of a tree hold, construct by construct.

use diag::SourceFile;
use syntax::tree::{Function, FunctionKind, Instruction, Item, LinkageKind, Operand, Statement, Variable};

/// Parses a file that must be without errors and hands over its items after the header.
fn with_items<T>(text: &str, look: impl FnOnce(&[Item]) -> T) -> T {
    let source = SourceFile::new("f", format!(".version 9.2\n.target sm_90\n.address_size 64\n{text}"));
    let (tree, diagnostics) = syntax::parse(&source);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    look(&tree.items[3..])
}

fn with_body<T>(text: &str, look: impl FnOnce(&[Statement]) -> T) -> T {
    with_items(&format!(".entry f() {{ {text} }}"), |items| {
        let [Item::Function(function)] = items else { panic!("{items:?}") };
        look(&function.body.as_ref().expect("a body").statements)
    })
}

fn with_instruction<T>(text: &str, look: impl FnOnce(&Instruction) -> T) -> T {
    with_body(text, |statements| {
        let [Statement::Instruction(instruction)] = statements else { panic!("{statements:?}") };
        look(instruction)
    })
}

fn with_variable<T>(text: &str, look: impl FnOnce(&Variable) -> T) -> T {
    with_items(text, |items| {
        let [Item::Variable(variable)] = items else { panic!("{items:?}") };
        look(variable)
    })
}

fn with_function<T>(text: &str, look: impl FnOnce(&Function) -> T) -> T {
    with_items(text, |items| {
        let [Item::Function(function)] = items else { panic!("{items:?}") };
        look(function)
    })
}

/// The shape of an operand, with every node named.
fn shape(operand: &Operand) -> String {
    let all = |operands: &[Operand]| operands.iter().map(shape).collect::<Vec<_>>().join(" ");
    match operand {
        Operand::Name(name) => name.text.to_owned(),
        Operand::WarpSize(_) => "WarpSize".to_owned(),
        Operand::Sink(_) => "Sink".to_owned(),
        Operand::Literal(literal) | Operand::String(literal) => literal.text.to_owned(),
        Operand::Index(index) => format!("(index {} {})", index.base.text, shape(&index.index)),
        Operand::Element(element) => format!("(element {} {})", element.base.text, element.component.text),
        Operand::Unary(unary) => format!("({} {})", unary.op.name(), shape(&unary.value)),
        Operand::Binary(binary) => {
            format!("({} {} {})", binary.op.name(), shape(&binary.left), shape(&binary.right))
        }
        Operand::Ternary(ternary) => {
            format!("(? {} {} {})", shape(&ternary.condition), shape(&ternary.yes), shape(&ternary.no))
        }
        Operand::Cast(cast) => format!("(cast {} {})", cast.ty.text, shape(&cast.value)),
        Operand::Apply(apply) => format!("(apply {} {})", shape(&apply.function), shape(&apply.argument)),
        Operand::Pair(pair) => format!("(pair {} {})", shape(&pair.first), shape(&pair.second)),
        Operand::Vector(vector) => format!("(vector {})", all(&vector.operands)),
        Operand::List(list) => format!("(list {})", all(&list.operands)),
        Operand::Address(address) => {
            let parts = std::iter::once(&address.location).chain(&address.coordinates);
            format!("(address {})", parts.map(shape).collect::<Vec<_>>().join(" "))
        }
    }
}

fn operands(text: &str) -> Vec<String> {
    with_instruction(text, |instruction| instruction.operands.iter().map(shape).collect())
}

/// The shape of the second operand.
fn second(text: &str) -> String {
    operands(&format!("foo a, {text};")).swap_remove(1)
}

#[test]
fn instructions() {
    with_instruction("@!%p1 ld .global\n.L1::evict_last.v2.b32 {%r1, _}, [%rd1+-4];", |instruction| {
        let guard = instruction.guard.as_ref().expect("a guard");
        assert_eq!((guard.negated, guard.predicate.text), (true, "%p1"));
        assert_eq!(instruction.opcode.text, "ld");
        let modifiers: Vec<_> = instruction.modifiers.iter().map(|modifier| modifier.text).collect();
        assert_eq!(modifiers, ["global", "L1::evict_last", "v2", "b32"]);
        assert_eq!(instruction.modifiers[0].span.len(), ".global".len());
        assert_eq!(
            instruction.span.len(),
            "@!%p1 ld .global\n.L1::evict_last.v2.b32 {%r1, _}, [%rd1+-4];".len()
        );
    });
    with_instruction("ret;", |ret| {
        assert!(ret.guard.is_none() && ret.modifiers.is_empty() && ret.operands.is_empty())
    });
}

#[test]
fn operand_kinds() {
    assert_eq!(operands("setp p|q, a, !p;"), ["(pair p q)", "a", "(! p)"]);
    assert_eq!(operands("setp _|q, a, b;"), ["(pair Sink q)", "a", "b"]);
    assert_eq!(operands("setp p|_, a, b;"), ["(pair p Sink)", "a", "b"]);
    assert_eq!(operands("setp _, a, b;"), ["Sink", "a", "b"]);
    assert_eq!(operands("tex {a, b}|p, [t, {x, y}];"), ["(pair (vector a b) p)", "(address t (vector x y))"]);
    assert_eq!(operands("foo 1|2;"), ["(| 1 2)"]);
    assert_eq!(second("{a, 1, _, v.x}"), "(vector a 1 Sink (element v x))");
    assert_eq!(second("v.x"), "(element v x)");
    assert_eq!(second("-a.h1"), "(- (element a h1))");
    assert_eq!(second("a[b+1]"), "(index a (+ b 1))");
    assert_eq!(second("WARP_SZ"), "WarpSize");
    assert_eq!(second("[t, s, {x}]"), "(address t s (vector x))");
}

#[test]
fn addresses() {
    for (text, expected) in [
        ("[a]", "(address a)"),
        ("[a+4]", "(address (+ a 4))"),
        ("[a+-4]", "(address (+ a (- 4)))"),
        ("[ %rd + 0 ]", "(address (+ %rd 0))"),
        ("[a+4+4]", "(address (+ a (+ 4 4)))"),
        ("[a+4*2]", "(address (+ a (* 4 2)))"),
        ("[4]", "(address 4)"),
        ("[WARP_SZ+4]", "(address (+ WarpSize 4))"),
    ] {
        assert_eq!(second(text), expected);
    }
}

#[test]
fn constant_expressions() {
    for (text, expected) in [
        ("1+2*3", "(+ 1 (* 2 3))"),
        ("(1+2)*3", "(* (+ 1 2) 3)"),
        ("1-2-3", "(- (- 1 2) 3)"),
        ("1-(2-3)", "(- 1 (- 2 3))"),
        ("1<<2+3", "(<< 1 (+ 2 3))"),
        ("1|2^3&4==5<6<<7", "(| 1 (^ 2 (& 3 (== 4 (< 5 (<< 6 7))))))"),
        ("1||2&&3", "(|| 1 (&& 2 3))"),
        ("1&&2||3", "(|| (&& 1 2) 3)"),
        ("1<=2>=3!=4", "(!= (>= (<= 1 2) 3) 4)"),
        ("1 % 2 / 3", "(/ (% 1 2) 3)"),
        ("1>>2>3", "(> (>> 1 2) 3)"),
        ("1?2:3?4:5", "(? 1 2 (? 3 4 5))"),
        ("1?2?3:4:5", "(? 1 (? 2 3 4) 5)"),
        ("(1?2:3)?4:5", "(? (? 1 2 3) 4 5)"),
        ("1|2?3|4:5|6", "(? (| 1 2) (| 3 4) (| 5 6))"),
        ("-1+~2*!3", "(+ (- 1) (* (~ 2) (! 3)))"),
        ("- -+1", "(- (- (+ 1)))"),
        ("(.s64)1+2", "(+ (cast s64 1) 2)"),
        ("(.u64)(.s64)-1", "(cast u64 (cast s64 (- 1)))"),
        ("-(.s64)(1+2)", "(- (cast s64 (+ 1 2)))"),
        ("b+1?2:3", "(+ b (? 1 2 3))"),
        ("0f3F800000", "0f3F800000"),
        ("1.5+.5", "(+ 1.5 .5)"),
    ] {
        assert_eq!(second(text), expected, "{text}");
    }
}

#[test]
fn calls() {
    assert_eq!(operands("call f;"), ["f"]);
    assert_eq!(
        operands("call.uni (r), f, (a, 1, _, -1), p;"),
        ["(list r)", "f", "(list a 1 Sink (- 1))", "p"]
    );
    assert_eq!(operands("call (), f, ();"), ["(list )", "f", "(list )"]);
    assert_eq!(operands("call f, p;"), ["f", "p"]);
}

#[test]
fn variables() {
    with_variable(".visible .const[2] .align 16 .v4 .f32 a[2][3] , b<7> = 1;", |v| {
        assert_eq!(v.linkage.as_ref().map(|linkage| linkage.kind), Some(LinkageKind::Visible));
        assert_eq!(v.space.map(|space| space.text), Some("const[2]"));
        assert_eq!(v.qualifiers.align.as_ref().map(shape).as_deref(), Some("16"));
        assert_eq!(v.qualifiers.vector.map(|vector| vector.text), Some("v4"));
        assert_eq!(v.qualifiers.ty.text, "f32");
        let [a, b] = &v.declarators[..] else { panic!() };
        assert_eq!((a.name.text, a.dimensions.len(), a.count.is_none()), ("a", 2, true));
        assert_eq!(b.count.as_ref().map(shape).as_deref(), Some("7"));
        assert_eq!(b.initializer.as_ref().map(ToString::to_string).as_deref(), Some("1"));
    });
    with_variable(".extern .shared .b8 s[];", |v| assert!(matches!(v.declarators[0].dimensions[..], [None])));
    with_variable(".global .attribute(.managed, .unified(1, 2)) .u32 x;", |v| {
        let names: Vec<_> =
            v.qualifiers.attributes.iter().map(|a| (a.name.text, a.arguments.len())).collect();
        assert_eq!(names, [("managed", 0), ("unified", 2)]);
    });
}

#[test]
fn initializers() {
    for text in [
        "{1, {2, 3}, {}}",
        "a",
        "a+4",
        "generic(a)",
        "generic(a)+4",
        "255(a)",
        "255(generic(a)+4)",
        "{b = c, d = 4}",
    ] {
        with_variable(&format!(".global .u64 x = {text};"), |variable| {
            assert_eq!(variable.declarators[0].initializer.as_ref().expect("a value").to_string(), text);
        });
    }
    with_variable(".global .u64 x = 255(generic(a))  ;", |variable| {
        let Some(syntax::tree::Initializer::Value(value)) = &variable.declarators[0].initializer else {
            panic!()
        };
        assert_eq!(shape(value), "(apply 255 (apply generic a))");
    });
}

#[test]
fn functions() {
    with_function(
        ".weak .func (.reg .b32 r) f (.param .align 8 .b8 a[16], .reg .u64 b) .noreturn;",
        |function| {
            assert_eq!(function.kind, FunctionKind::Func);
            assert_eq!(function.linkage.as_ref().map(|linkage| linkage.kind), Some(LinkageKind::Weak));
            assert_eq!(function.returns.as_ref().map(Vec::len), Some(1));
            assert_eq!(function.parameters.as_ref().map(Vec::len), Some(2));
            assert_eq!(function.directives[0].name.text, "noreturn");
            assert!(function.body.is_none());
        },
    );
    let text = ".entry k(.param .u64 .ptr .global .align 8 p) .maxntid 1, 2, 3 .pragma \"x\"; { }";
    with_function(text, |kernel| {
        assert_eq!(kernel.kind, FunctionKind::Entry);
        let parameter = &kernel.parameters.as_ref().expect("parameters")[0];
        let pointer = parameter.pointer.as_ref().expect("a pointer");
        assert_eq!(pointer.space.map(|space| space.text), Some("global"));
        assert_eq!(pointer.align.as_ref().map(shape).as_deref(), Some("8"));
        assert!(parameter.qualifiers.align.is_none());
        assert_eq!(kernel.directives[0].arguments.len(), 3);
        assert_eq!(kernel.directives[1].name.text, "pragma");
        assert!(kernel.body.as_ref().is_some_and(|body| body.statements.is_empty()));
    });
    with_function(".entry k;", |kernel| assert!(kernel.parameters.is_none() && kernel.body.is_none()));
}

#[test]
fn statements() {
    let text = "a: b: { ret; } .reg .b32 r; .loc 1 2 3, function_name n+4, inlined_at 5 6 7
        t: .branchtargets a, b; c: .callprototype (.param .b32 _) _ (); .pragma \"p\"; .func g;";
    with_body(text, |statements| {
        use Statement as S;
        let [
            S::Label(a),
            S::Label(b),
            S::Block(block),
            S::Variable(_),
            S::Loc(loc),
            S::Targets(targets),
            S::CallPrototype(prototype),
            S::Directive(pragma),
            S::Function(function),
        ] = statements
        else {
            panic!("{statements:?}")
        };
        assert_eq!((a.text, b.text, block.statements.len()), ("a", "b", 1));
        let inlined = loc.inlined.as_ref().expect("an inlined location");
        assert_eq!((loc.line.text, inlined.function_name.text, inlined.line.text), ("2", "n", "6"));
        assert_eq!(
            (targets.label.text, targets.directive.text, targets.targets.len()),
            ("t", "branchtargets", 2)
        );
        assert_eq!((prototype.label.text, prototype.parameters.as_ref().map(Vec::len)), ("c", Some(0)));
        assert_eq!((pragma.name.text, function.name.text), ("pragma", "g"));
    });
}

#[test]
fn sections() {
    use syntax::tree::SectionLine;
    with_items(".section .debug_x { l: .b8 1, -2 .b32 .debug_x+4 .b32 l-m } .file 1 \"a\", 2", |items| {
        let [Item::Section(section), Item::File(file)] = items else { panic!("{items:?}") };
        assert_eq!((section.name.text, file.name.text), ("debug_x", "\"a\""));
        assert!(file.timestamp.is_some() && file.size.is_none());
        let [
            SectionLine::Label(_),
            SectionLine::Data(bytes),
            SectionLine::Data(other),
            SectionLine::Data(difference),
        ] = &section.lines[..]
        else {
            panic!("{section:?}")
        };
        assert_eq!((bytes.width.text, bytes.values.len()), ("b8", 2));
        assert_eq!(shape(&other.values[0]), "(+ .debug_x 4)");
        assert_eq!(shape(&difference.values[0]), "(- l m)");
    });
}

#[test]
fn trees_are_equal_wherever_their_parts_stand() {
    let tree = |text: &str, look: &dyn Fn(&Instruction) -> bool| with_instruction(text, look);
    with_instruction("add.u32 a, b, 1;", |one| {
        assert!(tree("add .u32 a,b , 1 ;", &|other| one == other));
        for different in [
            "add.u32 a, b, 2;",
            "add.s32 a, b, 1;",
            "add.u32 a, b;",
            "@p add.u32 a, b, 1;",
            "sub.u32 a, b, 1;",
        ] {
            assert!(tree(different, &|other| one != other), "{different}");
        }
    });
}

#[test]
fn nodes_stay_small() {
    // 100 MB of text must not become gigabytes of tree.
    assert!(size_of::<Operand>() <= 32, "{}", size_of::<Operand>());
    assert!(size_of::<Statement>() <= 88, "{}", size_of::<Statement>());
}
