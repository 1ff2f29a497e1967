//! `cargo xtask picture counts.npy picture.png`: escape times as a picture that a person can look at.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use crate::record::Result;

/// What to draw, and where to.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// An array of two dimensions of u32: the output of examples/mandelbrot
    counts: PathBuf,
    /// The PNG to write
    picture: PathBuf,
}

/// Draws the counts of the one file into the other.
pub fn run(options: &Options) -> Result<()> {
    let (counts, height, width) = read(&options.counts)?;
    let limit = counts.iter().copied().max().unwrap_or(0);
    let pixels: Vec<u8> = counts.iter().flat_map(|&count| colour(count, limit)).collect();
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(&options.picture)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    println!("{}: {width} x {height} pixels", options.picture.display());
    Ok(())
}

/// The elements, height and width of a `.npy` file.
fn read(path: &Path) -> Result<(Vec<u32>, u32, u32)> {
    let file = npyz::NpyFile::new(BufReader::new(File::open(path)?))?;
    let &[height, width] = file.shape() else {
        return Err(
            format!("{}: a picture has two dimensions, not {}", path.display(), file.shape().len()).into()
        );
    };
    let (height, width) = (u32::try_from(height)?, u32::try_from(width)?);
    Ok((file.into_vec()?, height, width))
}

/// Black for points that never escaped; for the others, bands that go from deep blue to white and back, wider where
/// the counts grow faster.
fn colour(count: u32, limit: u32) -> [u8; 3] {
    if count == limit {
        return [0, 0, 0];
    }
    let phase = f64::from(count + 1).ln() * 2.5;
    let channel = |offset: f64| (127.5 * (1.0 - (phase + offset).cos())).round() as u8;
    [channel(0.0), channel(0.5), channel(1.2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inside_is_black_and_the_outside_is_not() {
        assert_eq!(colour(256, 256), [0, 0, 0]);
        assert!((1..256).all(|count| colour(count, 256) != [0, 0, 0]));
    }

    #[test]
    fn the_expected_output_of_the_example_becomes_a_picture() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = tempfile::tempdir().unwrap();
        let picture = folder.path().join("mandelbrot.png");
        run(&Options { counts: root.join("examples/mandelbrot/expected.npy"), picture: picture.clone() })
            .unwrap();
        let mut reader = png::Decoder::new(BufReader::new(File::open(picture).unwrap())).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (161, 121));
        let black = pixels.chunks(3).filter(|pixel| pixel == &[0, 0, 0]).count();
        assert!((2000..6000).contains(&black), "{black} pixels belong to the set");
    }
}
