//! `Debug` of handles: the type, and what identifies each. What they hold may be large, or in use by a launch.

use std::fmt::{Debug, Formatter, Result};

use crate::{
    Arg, Array, Buffer, Device, Element, Event, Image, Launch, Loaded, OriginalPlaces, Pending, Slice, Stream,
};

macro_rules! opaque {
    ($($Name:ident $(<$T:ident>)?,)*) => { $(
        impl $(<$T>)? Debug for $Name $(<$T>)? {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.debug_struct(stringify!($Name)).finish_non_exhaustive()
            }
        }
    )* };
}

opaque!(Arg, Device, Event, Launch, Loaded, OriginalPlaces, Pending<T>, Stream,);

impl Debug for Buffer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Buffer").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl<T: Element> Debug for Array<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Array").field("address", &self.address()).field("len", &self.len()).finish()
    }
}

impl<T: Element> Debug for Slice<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Slice").field("address", &self.address()).field("len", &self.len()).finish()
    }
}

impl Debug for Image {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Image").field("address", &self.address()).finish_non_exhaustive()
    }
}
