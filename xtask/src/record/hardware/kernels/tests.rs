//! The launches, made by ptxvm in place of a GPU: the recorder must bring arguments to the kernels, and find what comes out.

use ptxvm::tensor_map::{Element, Fill, Im2col, Mode, Swizzle, TensorMap};

use super::super::tensor_map::Taken;
use super::*;

struct Interpreter;

fn map_of(map: &Map, address: u64) -> TensorMap {
    let [element, swizzle, fill] = map.enumerations();
    let mut made = TensorMap::tiled(
        Element::of(element).expect("a type"),
        address,
        &map.extents,
        &vec![1; map.extents.len()],
    );
    assert_eq!(made.strides[..map.strides.len()], map.strides[..]);
    made.steps[..map.steps.len()].copy_from_slice(&map.steps);
    (made.swizzle, made.fill) = (Swizzle::of(swizzle).expect("a swizzle"), Fill::of(fill).expect("a fill"));
    made.mode = match &map.taken {
        Taken::Box(taken) => {
            let mut all = [1; 5];
            all[..taken.len()].copy_from_slice(taken);
            Mode::Tiled(all)
        }
        Taken::Columns { lower, upper, channels, pixels, wide } => {
            let mut columns = Im2col { channels: *channels, pixels: *pixels, ..Im2col::default() };
            columns.lower[..lower.len()].copy_from_slice(lower);
            columns.upper[..upper.len()].copy_from_slice(upper);
            match wide {
                Some(w128) => Mode::Im2colWide { columns, w128: *w128 },
                None => Mode::Im2col(columns),
            }
        }
    };
    assert_eq!(made.check(), Ok(()));
    made
}

impl Machine for Interpreter {
    fn launch(&mut self, text: &str, launch: &Launch) -> std::result::Result<Vec<Vec<u8>>, Missing> {
        let failed = |error: ptxvm::Error| Missing::Failed(error.to_string());
        let module = ptxvm::Module::from_ptx(text).map_err(|error| Missing::Refused(error.to_string()))?;
        let device = ptxvm::Device::for_module(&module);
        let loaded = device.load(&module).map_err(failed)?;
        for (name, data) in &launch.variables {
            loaded.write_variable(name, 0, data).map_err(failed)?;
        }
        let kernel = module.kernel(&launch.entry).map_err(failed)?;
        let mut made = loaded.launch(&launch.entry).configure(|config| {
            *config = ptxvm::LaunchConfig::new(launch.grid, launch.block);
            config.cluster = launch.cluster;
            config.cooperative = launch.cooperative;
            config.dynamic_shared = launch.shared.into();
        });
        let mut arrays = Vec::new();
        for (argument, param) in launch.arguments.iter().zip(&kernel.params) {
            let array = match argument {
                Argument::Number(_) => None,
                Argument::Array(bytes) | Argument::Map(_, bytes) => {
                    Some(device.array(bytes).map_err(failed)?)
                }
            };
            made = match (argument, &array) {
                (Argument::Map(map, _), Some(array)) => {
                    made.arg(ptxvm::Arg::bytes(map_of(map, array.address()).to_bytes()))
                }
                (Argument::Number(number), _) => {
                    made.arg(ptxvm::Arg::bytes(&number.to_le_bytes()[..param.bytes as usize]))
                }
                (_, Some(array)) => made.arg(array),
                (_, None) => panic!("an array"),
            };
            arrays.push(array);
        }
        made.run().map_err(failed)?;
        arrays
            .iter()
            .map(|array| array.as_ref().map_or(Ok(Vec::new()), |array| array.read()))
            .collect::<std::result::Result<_, _>>()
            .map_err(failed)
    }
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/run")
}

#[test]
fn every_launch_gives_what_its_header_says() {
    let (mut launches, mut families) = (0, std::collections::BTreeMap::new());
    for name in names(&folder(), &[]).expect("all headers can be read") {
        let verdict = one(&mut Interpreter, &folder(), &name).expect("there is such a launch");
        assert_eq!(verdict, "as expected\t", "{name:?}");
        launches += 1;
        *families.entry(name.file.split('_').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    assert!(launches > 280, "only {launches} launches");
    for (family, least) in [("tcgen05", 60), ("wgmma", 15), ("cluster", 8), ("tensor", 5), ("mma", 10)] {
        assert!(families.get(family).is_some_and(|&count| count >= least), "{family}: {families:?}");
    }
}

#[test]
fn what_differs_is_told() {
    struct Wrong;
    impl Machine for Wrong {
        fn launch(&mut self, text: &str, launch: &Launch) -> std::result::Result<Vec<Vec<u8>>, Missing> {
            match launch.arguments.len() {
                1 => Err(Missing::Failed("an error".to_owned())),
                2 => Err(Missing::Refused("no target".to_owned())),
                _ => {
                    let mut after = Interpreter.launch(text, launch)?;
                    after.iter_mut().flatten().for_each(|byte| *byte ^= 1);
                    Ok(after)
                }
            }
        }
    }
    let mut kinds = std::collections::BTreeSet::new();
    let words = ["tensor", "carry", "team"].map(str::to_owned);
    for name in names(&folder(), &words).expect("all headers can be read") {
        let verdict = one(&mut Wrong, &folder(), &name).expect("there is such a launch");
        let kind = verdict.split('\t').next().unwrap_or_default();
        assert_ne!(kind, "as expected", "{name:?}");
        kinds.insert(kind.to_owned());
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["different", "failed", "refused"]);
}
