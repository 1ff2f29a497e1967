//! Saving arrays as pictures.

use std::io::Write;

use super::array::{DType, HostArray};

/// Writes a PNG: rows and columns in grey from black (the smallest value) to white (the largest), or, with a third
/// extent of 3 or 4, the bytes unchanged as red, green, blue and opacity.
///
/// # Errors
/// When the array has no such shape, or the writer fails.
pub fn write(array: &HostArray, out: impl Write) -> std::io::Result<()> {
    let bytes = matches!(array.dtype, DType::U8 | DType::Bytes);
    let (height, width, color) = match *array.shape {
        [height, width] => (height, width, png::ColorType::Grayscale),
        [height, width, 3] if bytes => (height, width, png::ColorType::Rgb),
        [height, width, 4] if bytes => (height, width, png::ColorType::Rgba),
        _ => return Err(std::io::Error::other("a picture is an array of HxW, or of HxWx3 or HxWx4 bytes")),
    };
    let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else {
        return Err(std::io::Error::other("it is too large for a picture"));
    };
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    if color == png::ColorType::Grayscale {
        writer.write_image_data(&grey(array))?;
    } else {
        writer.write_image_data(&array.data)?;
    }
    Ok(writer.finish()?)
}

/// The elements scaled to 0..255; NaN is black.
fn grey(array: &HostArray) -> Vec<u8> {
    let values: Vec<f64> =
        array.data.chunks_exact(array.dtype.bytes()).map(|b| array.dtype.to_f64(b)).collect();
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let scale = if high > low { 255.0 / (high - low) } else { 0.0 };
    // Conversions from float to integer saturate, and map NaN to 0.
    values.iter().map(|value| ((value - low) * scale).round() as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_shades() {
        let data =
            [0.0f32, 1.0, f32::NAN, f32::INFINITY, 0.5, -1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let array = HostArray { dtype: DType::F32, shape: vec![2, 3], data };
        assert_eq!(grey(&array), [128, 255, 0, 255, 191, 0]);
        let mut file = Vec::new();
        write(&array, &mut file).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; 6];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (3, 2));
        assert_eq!(pixels, grey(&array));
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        for shape in [vec![], vec![6], vec![1, 2, 3]] {
            let array = HostArray { dtype: DType::U16, data: vec![0; 12], shape };
            assert!(write(&array, Vec::new()).is_err());
        }
        let empty = HostArray { dtype: DType::U8, data: vec![], shape: vec![0, 5] };
        assert!(write(&empty, Vec::new()).is_err());
    }
}
